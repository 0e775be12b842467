#!/bin/bash
# The demo: an edge with the policy of compose/demo in front of an upstream that shows what reaches it, as plain processes.
#
#   compose/local/demo.sh up       starts both, runs the curl lines of README.md, serves until Ctrl-C (`make demo`)
#   compose/local/demo.sh shared   starts a Valkey as well and has two agents share a limit (`make demo VALKEY=1`)
#   compose/local/demo.sh down     ends a demo that runs in another terminal (`make demo-down`)
#
# DEMO_PORT (8080) takes clients, DEMO_PORT + 1 answers /readyz, DEMO_PORT + 1010 and the one behind it are the agents' own
# (/metrics), DEMO_PORT + 2 is the upstream, DEMO_PORT + 3 Valkey. All on 127.0.0.1. State and the whole log are in
# DEMO_DIR (build/demo).
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
STATE=${DEMO_DIR:-$ROOT/build/demo}
EDGE=${EDGE_SPOA_BIN:-$ROOT/build/release/edge-spoa}
HAPROXY=${EDGE_HAPROXY:-$ROOT/.deps/haproxy-3.2/haproxy}
PORT=${DEMO_PORT:-8080}
README_ADDRESS=127.0.0.1:8080
PIDS=()
EDGE_PID=
UPSTREAM_PID=

# shellcheck source=compose/local/demo_shared.sh
. "$HERE/demo_shared.sh"

say() { printf 'demo: %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# The pid of a demo.sh that serves; fails when there is none. A number that belongs to another program by now is none.
running() {
    local pid
    pid=$(cat "$STATE/pid" 2>/dev/null) || return 1
    { tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qE 'demo\.sh (up|shared)'; } 2>/dev/null || return 1
    printf '%s\n' "$pid"
}

# Waits up to $1 seconds for a command to succeed.
wait_for() {
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$limit" ] || return 1
        sleep 0.1
    done
}

gone() { ! kill -0 "$1" 2>/dev/null; }

stop() {
    local pid
    trap - EXIT INT TERM
    for pid in ${PIDS[@]+"${PIDS[@]}"}; do
        kill -TERM "$pid" 2>/dev/null || continue
        # A stopped process (demo_shared.sh) would not hear it.
        kill -CONT "$pid" 2>/dev/null || true
        wait_for 15 gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
    done
    wait
    rm -f "$STATE/pid"
}

# Starts a command, in a session of its own so that Ctrl-C reaches this script alone, and ends it when this script dies.
start() {
    local log=$1
    shift
    setsid setpriv --pdeathsig TERM "$@" >"$log" 2>&1 </dev/null &
    PIDS+=($!)
}

check_ports() {
    local busy
    busy=$(python3 - "$@" <<'PY'
import socket, sys
for port in sys.argv[1:]:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", int(port)))
        except OSError:
            print(port)
PY
    )
    [ -z "$busy" ] || die "port ${busy//$'\n'/, } is in use; choose others: make demo DEMO_PORT=18080 (or compose/local/demo.sh)"
}

# The curl lines of the README's first code block below "## The demo".
readme_commands() {
    awk '/^## / { demo = $0 == "## The demo" } demo && /^```/ { if (block++) exit; next } demo && block && /^\$ / { print substr($0, 3) }' \
        "$ROOT/README.md"
}

show() {
    local command n=0
    while IFS= read -r command; do
        command=${command//$README_ADDRESS/127.0.0.1:$PORT}
        printf '\n$ %s\n' "$command"
        # The last line of a body need not have an end.
        printf '%s\n' "$(bash -c "$command" </dev/null)"
        n=$((n + 1))
    done < <(readme_commands)
    printf '\n'
    wait_for 5 records "$n" || die "there should be $n access records; see $STATE/edge.log"
    say "the same requests in the access log:"
    grep '"msg":"access"' "$STATE/edge.log"
}

records() { [ "$(grep -c '"msg":"access"' "$STATE/edge.log")" -ge "$1" ]; }

upstream_ready() {
    gone "$UPSTREAM_PID" && { cat "$STATE/upstream.log" >&2; die "the upstream has ended; its lines stand above"; }
    curl -sf -o /dev/null "http://127.0.0.1:$((PORT + 2))/"
}

ready() {
    gone "$EDGE_PID" && { cat "$STATE/edge.log" >&2; die "the edge has ended; its lines stand above"; }
    curl -sf -o /dev/null "http://127.0.0.1:$((PORT + 1))/readyz"
}

# Arguments: further settings, NAME=VALUE.
start_edge() {
    start "$STATE/edge.log" env -i PATH="$PATH" \
        UPSTREAM_URL="http://127.0.0.1:$((PORT + 2))" POLICY_FILE="$ROOT/compose/demo/policy.json" \
        CLIENT_IP_SOURCE=remote_addr EDGE_LISTEN="127.0.0.1:$PORT" EDGE_HEALTH_LISTEN="127.0.0.1:$((PORT + 1))" \
        EDGE_INTERNAL_LISTEN="127.0.0.1:$((PORT + 1010))" EDGE_HAPROXY="$HAPROXY" DRAIN_DELAY=0s SHUTDOWN_TIMEOUT=5s \
        "$@" "$EDGE" run
    EDGE_PID=$!
}

# What comes before the edge. Arguments: further ports that must be free.
prepare() {
    local pid
    [[ $PORT =~ ^[0-9]{1,5}$ && $PORT -gt 0 && $PORT -lt 64000 ]] || die "DEMO_PORT must be a number from 1 to 63999"
    if [ ! -x "$EDGE" ] || [ ! -x "$HAPROXY" ]; then
        die "something is not built yet; \`make demo\` builds and fetches what it needs"
    fi
    if pid=$(running); then die "a demo is running already (process $pid); \`make demo-down\` ends it"; fi
    check_ports "$PORT" $((PORT + 1)) $((PORT + 2)) $((PORT + 1010)) $((PORT + 1011)) "$@"
    mkdir -p "$STATE"
    printf '%s\n' "$$" >"$STATE/pid"
    trap stop EXIT
    trap 'exit 0' INT TERM
    start "$STATE/upstream.log" python3 "$ROOT/compose/demo/upstream.py" $((PORT + 2))
    UPSTREAM_PID=${PIDS[-1]}
}

# The edge is ready without its upstream, which /readyz says nothing about.
wait_ready() {
    wait_for 20 upstream_ready || die "the upstream does not answer after 20 s; see $STATE/upstream.log"
    wait_for 20 ready || die "the edge is not ready after 20 s; see $STATE/edge.log"
}

serve() {
    local lines
    lines=$(wc -l <"$STATE/edge.log")
    cat <<TEXT

demo: serving on http://127.0.0.1:$PORT  (policy: compose/demo/policy.json; \`kill -HUP $EDGE_PID\` reads it again)
demo: health http://127.0.0.1:$((PORT + 1))/readyz, metrics http://127.0.0.1:$((PORT + 1010))/metrics and on port $((PORT + 1011))
demo: Ctrl-C here or \`make demo-down\` elsewhere ends it; what the edge says from now on:
TEXT
    tail -n "+$((lines + 1))" -f --pid="$EDGE_PID" "$STATE/edge.log" &
    PIDS+=($!)
    wait "$!"
    die "the edge has ended by itself; see $STATE/edge.log"
}

up() {
    prepare
    start_edge
    wait_ready
    show
    serve
}

shared() {
    prepare $((PORT + 3))
    start_valkey
    start_edge EDGE_AGENTS=2 EDGE_AGENTS_ACTIVE=2 VALKEY_URL="redis://127.0.0.1:$((PORT + 3))/0" VALKEY_TIMEOUT=250ms \
        EXPECTED_REPLICAS=2
    wait_ready
    show_shared
    serve
}

down() {
    local pid
    pid=$(running) || { say "no demo is running"; return; }
    kill -TERM "$pid"
    wait_for 45 gone "$pid" || die "the demo (process $pid) does not end"
    say "ended"
}

case ${1:-} in
    up | shared | down) "$1" ;;
    *) die "usage: compose/local/demo.sh up|shared|down" ;;
esac
