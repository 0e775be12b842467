# Builds, tests and checks the edge proxy. `make help` lists the targets; every variant builds into build/<variant>/.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# Line coverage of common/ and spoa/ (per cent) below which `make cover` fails. It only rises.
COVER_FLOOR := 96
# Seconds of `make fuzz`, shared among its targets; TARGET=name fuzzes one.
T ?= 600
# SUITE="a b" narrows `make unit`; E2E="-k name" adds arguments to pytest.
SUITE ?=
SIM ?=
E2E ?=
# Processes of the end-to-end tests: they wait more than they compute. A file's tests share its edges, so they stay together.
E2E_JOBS ?= 3
# Arguments of the benchmarks, and of a soak.
BENCH ?=
SOAK ?=
# HAPROXY=3.4 on the command line runs tests and soaks on that version.
HAPROXY := 3.2
# What `edge-spoa --version` says; default: what git says of the tree.
VERSION ?=

ifeq ($(origin CC),default)
CC := gcc
endif
CLANG ?= clang
# V=1 shows the commands.
Q := $(if $(V),,@)

# ---- sources: found by name, nothing to list ----

COMMON_SRC := $(sort $(wildcard common/*/*.c))
SPOA_SRC := $(sort $(filter-out spoa/main.c,$(wildcard spoa/*.c spoa/*/*.c)))
UNIT_SRC := $(sort $(wildcard tests/unit/*.c))
UNIT_NAMES := $(patsubst tests/unit/test_%.c,%,$(filter tests/unit/test_%.c,$(UNIT_SRC)))
REPLAY_SRC := $(sort $(wildcard tests/replay/*.c))
SIM_SRC := $(sort $(wildcard tests/sim/*.c))
REPLAY_TXT := $(sort $(wildcard tests/replay/*.txt))
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
HEADERS := $(sort $(wildcard common/*/*.h spoa/*.h spoa/*/*.h tests/*/*.h))
E2E_TESTS := $(wildcard tests/e2e/test_*.py tests/e2e/*/test_*.py)

# ---- flags ----

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wvla -Wundef -Wcast-qual -Wformat=2 -Wmissing-prototypes \
	-Wstrict-prototypes -Wswitch-enum -Wwrite-strings -Werror
CPPFLAGS_ALL := -D_GNU_SOURCE -I.
CFLAGS_ALL := -std=gnu11 $(WARNINGS) -fno-strict-aliasing -fno-common -fstack-protector-strong -fPIE
LDFLAGS_ALL := -pie -Wl,-z,relro,-z,now

# Asked once, when the first command needs it: by then the packages are installed. libev has no pkg-config file.
PACKAGES := jansson libmicrohttpd libcrypto hiredis libcurl libpcre2-8 icu-i18n icu-uc
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PACKAGES)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PACKAGES)))$(PKG_LIBS)
LIBS = -lev $(PKG_LIBS) -lpthread -lm

# A variant: its compiler, what it adds, and what its programs run under. Fortified functions hide overruns from the
# sanitizers, and need an optimiser.
VARIANTS := release asan tsan cover clang fuzz

release_CC = $(CC)
release_CFLAGS := -O2 -g -D_FORTIFY_SOURCE=3
clang_CC = $(CLANG)
clang_CFLAGS := $(release_CFLAGS)

asan_CC = $(CC)
asan_CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
asan_RUN := ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1

# Kernels that spread addresses widely stop ThreadSanitizer from starting: ask for fixed ones where that is allowed.
tsan_CC = $(CC)
tsan_CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
tsan_RUN = TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 $(shell setarch -R true 2>/dev/null && echo setarch -R)

cover_CC := gcc
cover_CFLAGS := -O0 -g --coverage -fprofile-update=atomic

fuzz_CC = $(CLANG)
fuzz_CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

# ---- dependencies: stamps, so that the second run is instant and needs no network ----

DEPS_BUILD := .deps/apt-build.stamp
DEPS_TEST := .deps/apt-test.stamp
HAPROXY_BIN := $(CURDIR)/.deps/haproxy-$(HAPROXY)/haproxy

.deps/apt-%.stamp: compose/local/apt-packages.txt
	@mkdir -p $(@D)
	$(Q)compose/local/deps.sh $*
	@touch $@

# The scripts look for themselves whether anything is to do, also when the tree was copied elsewhere.
.PHONY: haproxy-3.2 haproxy-3.4 valkey
haproxy-3.2 haproxy-3.4: haproxy-%: | .deps/apt-run.stamp
	$(Q)compose/local/haproxy.sh $*

valkey: | .deps/apt-run.stamp
	$(Q)compose/local/valkey.sh

# ---- rules of a variant ----

# A file that is rewritten only when its text changes, so that what depends on it is rebuilt only then.
# $(call write_if_changed,text): the text is one or more lines of printf arguments.
write_if_changed = mkdir -p $(@D) && printf '%s\n' $(1) >$@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.PHONY: FORCE
FORCE:

build/version: FORCE
	@$(call write_if_changed,"$(or $(VERSION),$$(GIT_OPTIONAL_LOCKS=0 git describe --always --dirty 2>/dev/null || echo unknown))")

# The launcher of the agent looks for haproxy/ beside the folder of its binary.
build/share/edge-proxy/haproxy: | $(DEPS_BUILD)
	@mkdir -p $(@D)
	@ln -sfn ../../../haproxy $@

objects = $(patsubst %.c,build/$(1)/obj/%.o,$(2))
libraries = build/$(1)/libspoa.a build/$(1)/libcommon.a
programs = $(if $(wildcard spoa/main.c),build/$(1)/edge-spoa)
unit = $(if $(UNIT_NAMES),build/$(1)/unit)
replay = $(if $(REPLAY_SRC),build/$(1)/replay)
corpus = $(addprefix build/$(1)/corpus_,$(FUZZ_NAMES))
sim = $(if $(SIM_SRC),build/$(1)/sim)
everything = $(call programs,$(1)) $(call unit,$(1)) $(call replay,$(1)) $(call sim,$(1)) $(call corpus,$(1))

# What takes memory: in the unit tests calls of it pass through tests/unit/refuse_memory.c.
REFUSABLE := calloc arena_take arena_take_n arena_take_bytes arena_take_buf arena_copy_str arena_copy_lower arena_on_release \
	pcre2_compile_context_create_8 pcre2_match_context_create_8 pcre2_match_data_create_8 pthread_setspecific rate_subject_hash \
	EVP_Digest EVP_MD_CTX_new aligned_alloc fdopen fdopendir realloc ev_loop_new pthread_create

define VARIANT
build/$(1)/flags: FORCE
	@$$(call write_if_changed,'$$($(1)_CC) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$($(1)_CFLAGS) $$(LDFLAGS_ALL)')

build/$(1)/sources: FORCE
	@$$(call write_if_changed,$$(COMMON_SRC) $$(SPOA_SRC))

build/$(1)/obj/%.o: %.c build/$(1)/flags Makefile | $$(DEPS_BUILD)
	@mkdir -p $$(@D)
	@echo "  CC    $$@"
	$$(Q)$$($(1)_CC) $$(CPPFLAGS_ALL) -include common/base/banned.h $$(EXTRA) $$(CFLAGS_ALL) $$($(1)_CFLAGS) \
		$$(PKG_CFLAGS) -MMD -MP -c -o $$@ $$<

# Kept although only a chain of pattern rules names it.
.PRECIOUS: build/$(1)/obj/%.o

build/$(1)/obj/spoa/cli/version.o: EXTRA = -DEDGE_VERSION='"$$(shell cat build/version)"'
build/$(1)/obj/spoa/cli/version.o: build/version

# Embedded by the assembler, which writes no dependency.
build/$(1)/obj/common/rate/script.o: common/rate/limits.lua

build/$(1)/libcommon.a: $$(call objects,$(1),$$(COMMON_SRC)) build/$(1)/sources
	@rm -f $$@
	$$(Q)ar rcs $$@ $$(filter %.o,$$^)

build/$(1)/libspoa.a: $$(call objects,$(1),$$(SPOA_SRC)) build/$(1)/sources
	@rm -f $$@
	$$(Q)ar rcs $$@ $$(filter %.o,$$^)

build/$(1)/edge-spoa: build/$(1)/obj/spoa/main.o $(call libraries,$(1)) | build/share/edge-proxy/haproxy
	@echo "  LD    $$@"
	$$(Q)$$($(1)_CC) $$(CFLAGS_ALL) $$($(1)_CFLAGS) $$(LDFLAGS_ALL) -o $$@ $$^ $$(LIBS)

build/$(1)/gen/suites.h: FORCE
	@$$(call write_if_changed,'/* Made by the Makefile: the suites of tests/unit/. */' 'void suites_register(void);' \
		$$(foreach n,$$(UNIT_NAMES),'void test_$$(n)_register(void);'))

build/$(1)/gen/suites.c: FORCE
	@$$(call write_if_changed,'/* Made by the Makefile: registers every suite of tests/unit/. */' \
		'void suites_register(void)' '{' $$(foreach n,$$(UNIT_NAMES),'    test_$$(n)_register();') '}')

# Every file of tests/unit sees the declarations, so that none has to repeat its own.
build/$(1)/obj/tests/unit/%.o build/$(1)/gen/suites.o: EXTRA = -include build/$(1)/gen/suites.h
$$(call objects,$(1),$$(UNIT_SRC)): build/$(1)/gen/suites.h | $$(DEPS_TEST)
build/$(1)/gen/suites.o: build/$(1)/gen/suites.c build/$(1)/gen/suites.h build/$(1)/flags | $$(DEPS_TEST)
	$$(Q)$$($(1)_CC) $$(CPPFLAGS_ALL) $$(EXTRA) $$(CFLAGS_ALL) $$($(1)_CFLAGS) -c -o $$@ $$<

build/$(1)/unit: $$(call objects,$(1),$$(UNIT_SRC)) build/$(1)/gen/suites.o $(call libraries,$(1))
	@echo "  LD    $$@"
	$$(Q)$$($(1)_CC) $$(CFLAGS_ALL) $$($(1)_CFLAGS) $$(LDFLAGS_ALL) $$(REFUSABLE:%=-Wl,--wrap=%) -o $$@ $$^ -lcunit $$(LIBS)

build/$(1)/replay: $$(call objects,$(1),$$(REPLAY_SRC)) $(call libraries,$(1))
	@echo "  LD    $$@"
	$$(Q)$$($(1)_CC) $$(CFLAGS_ALL) $$($(1)_CFLAGS) $$(LDFLAGS_ALL) -o $$@ $$^ $$(LIBS)

build/$(1)/sim: $$(call objects,$(1),$$(SIM_SRC)) $(call libraries,$(1))
	@echo "  LD    $$@"
	$$(Q)$$($(1)_CC) $$(CFLAGS_ALL) $$($(1)_CFLAGS) $$(LDFLAGS_ALL) -o $$@ $$^ $$(LIBS)

build/$(1)/corpus_%: build/$(1)/obj/tests/fuzz/fuzz_%.o build/$(1)/obj/tests/fuzz/corpus_main.o \
		$(call libraries,$(1))
	@echo "  LD    $$@"
	$$(Q)$$($(1)_CC) $$(CFLAGS_ALL) $$($(1)_CFLAGS) $$(LDFLAGS_ALL) -o $$@ $$^ $$(LIBS)
endef
$(foreach v,$(VARIANTS),$(eval $(call VARIANT,$(v))))

build/fuzz/fuzz_%: build/fuzz/obj/tests/fuzz/fuzz_%.o $(call libraries,fuzz)
	@echo "  LD    $@"
	$(Q)$(fuzz_CC) $(CFLAGS_ALL) $(fuzz_CFLAGS) -fsanitize=fuzzer $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# Clang is needed before the first object of its variants.
$(call objects,clang,$(COMMON_SRC) $(SPOA_SRC)) $(call objects,fuzz,$(COMMON_SRC) $(SPOA_SRC)): | $(DEPS_TEST)

-include $(shell find build -name '*.d' 2>/dev/null)

# ---- recipes of the suites: $(call run_x,variant); each runner's closing line stays the last one it prints ----

# A suite that has no file yet says so instead of passing in silence: $(call skipped,suite,files)
skipped = @echo "== $(1): skipped: there is no $(2)"

ifneq ($(UNIT_NAMES),)
define run_unit
	@echo "== unit ($(1))"
	@$($(1)_RUN) build/$(1)/unit $(SUITE)
endef
else
run_unit = $(call skipped,unit ($(1)),tests/unit/test_*.c)
endif

ifneq ($(REPLAY_SRC),)
define run_replay
	@echo "== replay ($(1))"
	@$($(1)_RUN) build/$(1)/replay $(REPLAY_TXT)
endef
else
run_replay = $(call skipped,replay ($(1)),tests/replay/*.c)
endif

# SIM="--seed 7 --steps 1000000" instead of the fixed seeds.
ifneq ($(SIM_SRC),)
define run_sim
	@echo "== sim ($(1))"
	@$($(1)_RUN) build/$(1)/sim $(SIM)
endef
else
run_sim = $(call skipped,sim ($(1)),tests/sim/*.c)
endif

# A target without any input proves nothing: that is a failure.
ifneq ($(FUZZ_NAMES),)
define run_corpus
	@echo "== corpus ($(1))"
	@failed=0; for n in $(FUZZ_NAMES); do \
		if [ -n "$$(ls tests/fuzz/corpus/$$n 2>/dev/null)" ]; then \
			$($(1)_RUN) build/$(1)/corpus_$$n tests/fuzz/corpus/$$n || failed=1; \
		else \
			echo "corpus_$$n: failed: there is no input in tests/fuzz/corpus/$$n"; failed=1; \
		fi; \
	done; exit $$failed
endef
else
run_corpus = $(call skipped,corpus ($(1)),tests/fuzz/fuzz_*.c)
endif

# $(call run_e2e,variant,haproxy). pytest ends with 5 when it found no test.
ifneq ($(E2E_TESTS),)
define run_e2e
	@echo "== e2e ($(1))"
	@$($(1)_RUN) EDGE_SPOA_BIN=$(CURDIR)/build/$(1)/edge-spoa EDGE_HAPROXY=$(2) PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -m pytest -q -rs -p no:cacheprovider -n $(E2E_JOBS) --dist loadfile $(E2E) tests/e2e || { s=$$?; \
		if [ $$s = 5 ]; then echo "== e2e ($(1)): skipped: pytest found no tests"; else exit $$s; fi; }
endef
else
run_e2e = $(call skipped,e2e ($(1)),tests/e2e/test_*.py)
endif

# $(call run_soak,name): tests/soak/<name>.py, which prints its figures and fails when its promise did not hold.
run_soak = $(Q)EDGE_SPOA_BIN=$(CURDIR)/build/release/edge-spoa EDGE_HAPROXY=$(HAPROXY_BIN) PYTHONDONTWRITEBYTECODE=1 \
	/usr/bin/python3 tests/soak/$(1).py $(SOAK)

# ---- targets ----

.PHONY: help all deps demo demo-down unit replay sim corpus e2e test asan tsan cover lint lint-headers reference fuzz \
	bench bench-policy bench-expr bench-record bench-guard bench-locale bench-instructions soak-exchange soak-limit soak-records soak-streams soak-valkey test-haproxy34 test-debian13 \
	clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

all: $(call programs,release) ## the agent, build/release/edge-spoa (needs the build packages only)

# The tests look for Valkey where `valkey` puts it, unless EDGE_VALKEY names another.
deps: $(DEPS_BUILD) .deps/apt-run.stamp $(DEPS_TEST) haproxy-$(HAPROXY) valkey ## Debian packages, a private HAProxy 3.2 and Valkey 8

demo: all .deps/apt-run.stamp haproxy-3.2 $(if $(VALKEY),valkey) ## starts the demo edge as plain processes (VALKEY=1: a shared limit)
	$(Q)compose/local/demo.sh $(if $(VALKEY),shared,up)

demo-down: ## stops the demo
	$(Q)compose/local/demo.sh down

unit: $(call unit,release) ## unit tests (SUITE="name ..." for some)
	$(call run_unit,release)

replay: $(call replay,release) ## wire replay scripts
	$(call run_replay,release)

sim: $(call sim,release) ## seeded simulations (SIM="--seed 7 --steps 1000000" for a long one)
	$(call run_sim,release)

corpus: $(call corpus,release) ## the fuzz corpora as ordinary tests
	$(call run_corpus,release)

e2e: all deps ## end-to-end tests on HAProxy 3.2 (E2E="-k name" for some)
	$(call run_e2e,release,$(HAPROXY_BIN))

test: deps $(call everything,release) ## unit, replay, sim, corpus and end-to-end tests
	$(call run_unit,release)
	$(call run_replay,release)
	$(call run_sim,release)
	$(call run_corpus,release)
	$(call run_e2e,release,$(HAPROXY_BIN))

asan: deps $(call everything,asan) ## unit, replay, sim, corpus and end-to-end tests under ASan and UBSan
	$(call run_unit,asan)
	$(call run_replay,asan)
	$(call run_sim,asan)
	$(call run_corpus,asan)
	$(call run_e2e,asan,$(HAPROXY_BIN))

tsan: $(DEPS_TEST) $(call programs,tsan) $(call unit,tsan) $(call replay,tsan) $(call sim,tsan) ## unit, replay and sim under TSan
	$(call run_unit,tsan)
	$(call run_replay,tsan)
	$(call run_sim,tsan)

# The image's edge runs as another user below a read-only root: gcov could write nothing there.
cover: E2E += --ignore=tests/e2e/test_image.py
cover: deps $(call everything,cover) ## line coverage of common/ and spoa/ over all suites, held to COVER_FLOOR
	@find build/cover -name '*.gcda' -delete
	$(call run_unit,cover)
	$(call run_replay,cover)
	$(call run_sim,cover)
	$(call run_corpus,cover)
	$(call run_e2e,cover,$(HAPROXY_BIN))
	@echo "== coverage (floor $(COVER_FLOOR) %)"
	@# gcov counts the arc behind exec below zero; without the flag gcovr stops there.
	@gcovr --gcov-ignore-parse-errors --root . --object-directory build/cover/obj --filter 'common/' --filter 'spoa/' \
		--html-details build/cover/index.html --print-summary --fail-under-line $(COVER_FLOOR) build/cover/obj

lint: $(DEPS_TEST) $(call everything,clang) lint-headers ## clang build, include arrows, lengths, wire, reference pages, shellcheck
	@tests/lint/run.sh

.PHONY: reference
reference: ## schemas/reference/*.md and schemas/vocabulary.json, from the tables
	@PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 schemas/reference/generate.py

# A header compiles alone: nothing is force-included here, and it is the only thing the file includes.
lint-headers: $(HEADERS:%=build/clang/headers/%.ok)

build/clang/headers/%.ok: % build/clang/flags | $(DEPS_BUILD) $(DEPS_TEST)
	@mkdir -p $(@D)
	$(Q)echo '#include "$<"' | $(clang_CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(clang_CFLAGS) $(PKG_CFLAGS) \
		-MMD -MP -MF $(@:.ok=.d) -MT $@ -fsyntax-only -x c - || { echo "$<: does not compile alone"; exit 1; }
	@touch $@

FUZZ_WANTED := $(or $(TARGET),$(FUZZ_NAMES))
fuzz: $(DEPS_TEST) $(FUZZ_WANTED:%=build/fuzz/fuzz_%) ## libFuzzer for T seconds; crashes become corpus files
	$(if $(FUZZ_WANTED),@tests/fuzz/fuzz.sh build/fuzz $(T) $(FUZZ_WANTED),$(call skipped,fuzz,tests/fuzz/fuzz_*.c))

bench: all deps .deps/apt-bench.stamp ## benchmarks, one JSON line each (BENCH="--short --table")
	$(Q)/usr/bin/python3 tests/bench/bench.py $(BENCH)

build/release/bench_expr: build/release/obj/tests/bench/bench_expr.o build/release/libcommon.a
	@echo "  LD    $@"
	$(Q)$(release_CC) $(CFLAGS_ALL) $(release_CFLAGS) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

bench-expr: build/release/bench_expr ## CPU time of expressions a request, one JSON line a shape of policy (BENCH="distinct")
	$(Q)build/release/bench_expr $(BENCH)

bench-instructions: all deps .deps/apt-bench.stamp ## user instructions per request of HAProxy and agent, by callgrind (BENCH="--rows bare-3.2")
	$(Q)/usr/bin/python3 tests/bench/instructions.py $(BENCH)

build/release/bench_policy: build/release/obj/tests/bench/policy_bench.o build/release/libcommon.a
	@echo "  LD    $@"
	$(Q)$(release_CC) $(CFLAGS_ALL) $(release_CFLAGS) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

bench-policy: build/release/bench_policy ## the largest policies: time to read them and memory they take, one JSON line each
	$(Q)build/release/bench_policy

build/release/bench_record: build/release/obj/tests/bench/record_bench.o $(call libraries,release)
	@echo "  LD    $@"
	$(Q)$(release_CC) $(CFLAGS_ALL) $(release_CFLAGS) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

bench-record: build/release/bench_record ## CPU time of an access record in the agent that keeps it, in parts and as a whole
	$(Q)build/release/bench_record

build/release/bench_locale: build/release/obj/tests/bench/locale_bench.o $(call libraries,release)
	@echo "  LD    $@"
	$(Q)$(release_CC) $(CFLAGS_ALL) $(release_CFLAGS) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

bench-locale: build/release/bench_locale ## CPU time of choosing a locale: matched, and remembered
	$(Q)build/release/bench_locale

build/release/bench_guard: build/release/obj/tests/bench/guard_bench.o $(call libraries,release)
	@echo "  LD    $@"
	$(Q)$(release_CC) $(CFLAGS_ALL) $(release_CFLAGS) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

bench-guard: build/release/bench_guard ## CPU time of the backstop's check and sweep, bytes of a client, with few clients and with a million
	$(Q)build/release/bench_guard

soak-exchange: all deps ## 20,000 requests for each fault of an agent or HAProxy, none fails (SOAK="--requests N kill")
	$(call run_soak,exchange)

soak-limit: all deps ## 100,000 requests over three edges, one bucket, excess 0
	$(call run_soak,limit)

soak-records: all deps .deps/apt-bench.stamp ## records at 10,000 requests/s while agents stop, die and are exchanged, then 5 million more (SOAK="flood")
	$(call run_soak,records)

soak-streams: all deps ## 10,000 event streams and 1,000 WebSockets held for 5 minutes, then drained (SOAK="--events N --seconds N")
	$(call run_soak,streams)

soak-valkey: all deps ## Valkey frozen, killed, cut off for 20 s each under load (SOAK="--seconds N frozen")
	$(call run_soak,valkey)

test-haproxy34: deps haproxy-3.4 all ## the end-to-end tests on HAProxy 3.4
	$(call run_e2e,release,$(CURDIR)/.deps/haproxy-3.4/haproxy)

test-debian13: .deps/apt-chroot.stamp ## make test in a fresh Debian 13 (needs root; skipped aloud where refused)
	$(Q)tests/debian13.sh

clean: ## removes build/
	rm -rf build

distclean: clean ## removes .deps/ too
	rm -rf .deps
