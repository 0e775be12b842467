#!/bin/bash
# A private view of the Debian archive: newer suites through this machine's own mirror, system untouched.
#
# Sourced, not run. The caller gets functions:
#   archive_mirrors              the Debian mirrors of this machine's apt sources, best first, as "uri<TAB>keyring";
#                                the keyring may be empty
#   archive_open DIR MIRROR KEYRING SUITE...   loads the package lists of the suites into DIR; some may be missing
#   archive_apt TOOL ARGS...     runs apt-get or apt-cache on what archive_open loaded
#   archive_reason               why the last archive_open found nothing, one line
# Proxies, credentials and certificates come from the machine's apt configuration; only sources, lists and caches are
# our own.

ARCHIVE_DIR=
# Suites of the archive itself; anything else ("bookworm-security", "bookworm-pgdg", "nodistro") is not a mirror of it.
ARCHIVE_SUITES='^(stable|oldstable|testing|unstable|sid|bookworm|trixie|forky|duke)$'

# Prints "uri<TAB>suite<TAB>components<TAB>signed-by" for every enabled binary source, from both file formats.
archive_sources() {
    local LIST='' PARTS=''
    eval "$(apt-config shell LIST Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d)"
    local f
    for f in "$LIST" "${PARTS%/}"/*.list; do
        [ -r "$f" ] && awk '
            { sub(/#.*/, "") }
            $1 == "deb" {
                signed = ""; i = 2
                if ($2 ~ /^\[/) {
                    for (; i <= NF; i++) {
                        word = $i; gsub(/[][]/, "", word)
                        if (word ~ /^signed-by=/) signed = substr(word, 11)
                        if ($i ~ /\]$/) { i++; break }
                    }
                }
                uri = $i; suite = $(i + 1); comps = ""
                for (j = i + 2; j <= NF; j++) comps = comps $j " "
                printf "%s\t%s\t%s\t%s\n", uri, suite, comps, signed
            }' "$f"
    done
    for f in "${PARTS%/}"/*.sources; do
        [ -r "$f" ] && awk '
            function flush(   u, s, nu, ns, a, b) {
                if (F["types"] ~ /(^| )deb( |$)/ && F["enabled"] !~ /^(no|false|0)/) {
                    nu = split(F["uris"], a, " "); ns = split(F["suites"], b, " ")
                    for (u = 1; u <= nu; u++) for (s = 1; s <= ns; s++)
                        printf "%s\t%s\t%s\t%s\n", a[u], b[s], F["components"], F["signed-by"]
                }
                split("", F); name = ""
            }
            /^#/ { next }
            /^[ \t]*$/ { flush(); next }
            /^[ \t]/ { if (name != "") F[name] = F[name] " " $0; next }
            { at = index($0, ":"); name = tolower(substr($0, 1, at - 1)) }
            { F[name] = substr($0, at + 1); sub(/^ +/, "", F[name]) }
            END { flush() }' "$f"
    done
    return 0
}

archive_mirrors() {
    local uri suite comps keyring rank
    archive_sources | while IFS=$'\t' read -r uri suite comps keyring; do
        [[ $suite =~ $ARCHIVE_SUITES && " $comps " == *" main "* ]] || continue
        # Cloud images point at a file that lists mirrors; its first line is the one apt prefers.
        if [[ $uri == mirror+file:* ]]; then
            uri=$(awk '!/^#/ && NF { print $1; exit }' "${uri#mirror+file:}" 2>/dev/null) || continue
            [ -n "$uri" ] || continue
        fi
        # A key written into the source itself is no file: then the system's trusted keys decide.
        [[ $keyring == /* ]] || keyring=
        rank=2
        [[ ${uri%/} == */debian ]] && rank=1
        printf '%s\t%s\t%s\n' "$rank" "${uri%/}" "$keyring"
    done | sort -s -k1,1n | cut -f2- | awk '!seen[$0]++'
}

archive_open() {
    local mirror=$2 keyring=$3 suite options
    ARCHIVE_DIR=$1
    shift 3
    [ -n "$keyring" ] || [ ! -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    options="arch=$(dpkg --print-architecture) target=Packages lang=none${keyring:+ signed-by=$keyring}"
    mkdir -p "$ARCHIVE_DIR/empty" "$ARCHIVE_DIR/lists/partial" "$ARCHIVE_DIR/cache/archives/partial"
    : >"$ARCHIVE_DIR/status"
    for suite in "$@"; do
        printf 'deb [%s] %s %s main\n' "$options" "$mirror" "$suite"
    done >"$ARCHIVE_DIR/sources.list"
    # Read after the machine's own configuration, so it wins.
    cat >"$ARCHIVE_DIR/apt.conf" <<CONF
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear APT::Default-Release;
Dir::Etc::sourcelist "$ARCHIVE_DIR/sources.list";
Dir::Etc::sourceparts "$ARCHIVE_DIR/empty";
Dir::Etc::preferences "$ARCHIVE_DIR/empty/preferences";
Dir::Etc::preferencesparts "$ARCHIVE_DIR/empty";
Dir::State "$ARCHIVE_DIR";
Dir::State::lists "$ARCHIVE_DIR/lists";
Dir::State::status "$ARCHIVE_DIR/status";
Dir::State::extended_states "$ARCHIVE_DIR/extended_states";
Dir::Cache "$ARCHIVE_DIR/cache";
Dir::Cache::archives "$ARCHIVE_DIR/cache/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Retries "2";
CONF
    # A suite the mirror does not carry fails alone; the others are loaded all the same.
    archive_apt apt-get update >"$ARCHIVE_DIR/update.log" 2>&1 || true
    [ -n "$(find "$ARCHIVE_DIR/lists" -maxdepth 1 -name '*_Packages*' -print -quit)" ]
}

archive_apt() {
    local tool=$1
    shift
    "$tool" -q -c "$ARCHIVE_DIR/apt.conf" "$@" </dev/null
}

archive_reason() {
    sed -n '/^[EW]: /{s///;p;q;}' "$ARCHIVE_DIR/update.log" 2>/dev/null
}
