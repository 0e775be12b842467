#!/bin/bash
# Puts a HAProxy of the wanted branch at .deps/haproxy-BRANCH/haproxy without touching the system.
#
#   compose/local/haproxy.sh [3.2|3.4]        (default 3.2)
#
# The system's own haproxy is linked when it is of that branch. Otherwise the newest Debian build of the branch is taken
# from the machine's own Debian mirror (newer suites), unpacked with its libraries into a private folder, and the
# binary is bound to those libraries. It must stay a plain executable: on a reload HAProxy's master executes itself
# again, which fails for a program started through a private dynamic loader.
#
# Safe when several run at once. A finished fetch costs nothing the second time and needs no network.
# A tree that was copied elsewhere is noticed (the loader's path is absolute) and fetched again.
set -euo pipefail

BRANCH=${1:-3.2}
SUITES=(forky sid experimental trixie-backports bookworm-backports)
MINIMUM=3.2

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
DIR=$ROOT/.deps/haproxy-$BRANCH
STAMP=$DIR/stamp
WORK=
ROOTFS=

# shellcheck source=compose/local/archive.sh
. "$HERE/archive.sh"

say() { printf 'haproxy.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Version of a binary as "3.2.26", empty when it does not run.
version_of() { "$1" -v 2>/dev/null | sed -n 's/^HAProxy version \([0-9][0-9.]*\).*/\1/p;q' || true; }

in_branch() { [[ $1 == "$BRANCH".* || $1 == "$BRANCH" ]]; }

# The stamp is written last and names the path that the binary is bound to.
is_ready() {
    [ -x "$DIR/haproxy" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$DIR" ] && [ -n "$(version_of "$DIR/haproxy")" ]
}

clean_up() {
    [ -z "$WORK" ] || rm -rf "$WORK"
    [ -z "$ROOTFS" ] || rm -rf "$ROOTFS"
}

# Links the system's haproxy when it is of the branch.
link_system() {
    local own
    own=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v haproxy) || return 1
    in_branch "$(version_of "$own")" || return 1
    ln -sfn "$own" "$DIR/haproxy"
    say "using the system's $own ($(version_of "$own"))"
}

# The newest version on offer in the branch; when the suites have moved on, the newest of a later branch.
pick_version() {
    local version best='' later=''
    while read -r version; do
        if in_branch "${version%%[-+~]*}"; then
            if [ -z "$best" ] || dpkg --compare-versions "$version" gt "$best"; then best=$version; fi
        elif dpkg --compare-versions "$version" ge "$BRANCH"; then
            if [ -z "$later" ] || dpkg --compare-versions "$version" gt "$later"; then later=$version; fi
        fi
    done < <(archive_apt apt-cache madison haproxy 2>/dev/null | awk -F'|' '{ gsub(/ /, "", $2); print $2 }')
    printf '%s\n' "${best:-$later}"
}

# Downloads the package and the libraries that the suites' own dependency rules give it, into $WORK/debs.
download() {
    local version=$1 packages
    packages=$(archive_apt apt-get install -s --no-install-recommends "haproxy=$version" 2>"$WORK/solve.log" |
        awk '$1 == "Inst" && ($2 == "haproxy" || $2 ~ /^z?lib/) { v = $3; sub(/^\(/, "", v); print $2 "=" v }')
    [ -n "$packages" ] || return 1
    mkdir -p "$WORK/debs"
    # shellcheck disable=SC2086  # one word a package
    (cd "$WORK/debs" && archive_apt apt-get download $packages) >"$WORK/download.log" 2>&1
}

# Unpacks the packages into a folder of their own and binds a copy of the binary to the libraries there.
unpack() {
    local deb loader rpath
    ROOTFS=$(mktemp -d "$DIR/root.XXXXXX")
    chmod 755 "$ROOTFS"
    for deb in "$WORK"/debs/*.deb; do
        dpkg -x "$deb" "$ROOTFS" || return 1
    done
    rm -rf "${ROOTFS:?}/usr/share"
    loader=$(basename "$(patchelf --print-interpreter "$ROOTFS/usr/sbin/haproxy")")
    loader=$(find "$ROOTFS" -name "$loader" -print -quit)
    rpath=$(find "$ROOTFS" -type f -name 'lib*.so*' -printf '%h\n' | sort -u |
        grep -v '/gconv\|/ossl-modules\|/security' | paste -sd:)
    [ -n "$loader" ] && [ -n "$rpath" ] || return 1
    cp "$ROOTFS/usr/sbin/haproxy" "$ROOTFS/haproxy"
    patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$rpath" "$ROOTFS/haproxy" || return 1
    "$ROOTFS/haproxy" -vv >"$WORK/run.log" 2>&1
}

# Tries one mirror; prints the reason of a failure on stdout.
fetch_from() {
    local mirror=$1 keyring=$2 version
    if ! archive_open "$WORK/apt" "$mirror" "$keyring" "${SUITES[@]}"; then
        printf '%s: nothing reachable (%s)' "$mirror" "$(archive_reason)"
        return 1
    fi
    version=$(pick_version)
    if [ -z "$version" ]; then
        printf '%s: no suite of %s has haproxy %s or newer' "$mirror" "${SUITES[*]}" "$BRANCH"
        return 1
    fi
    if ! download "$version"; then
        printf '%s: haproxy %s or its libraries could not be downloaded (%s)' "$mirror" "$version" \
            "$(cat "$WORK/solve.log" "$WORK/download.log" 2>/dev/null | sed -n '/^[EW]:/{p;q;}')"
        return 1
    fi
    printf '%s' "$version" >"$WORK/version"
}

fetch() {
    local mirror keyring reasons='' reason version old
    command -v patchelf >/dev/null || die "patchelf is missing; run compose/local/deps.sh run"
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/haproxy-fetch.XXXXXX")
    while IFS=$'\t' read -r mirror keyring; do
        if reason=$(fetch_from "$mirror" "$keyring"); then
            version=$(cat "$WORK/version")
            break
        fi
        reasons+="${reasons:+; }$reason"
        rm -rf "$WORK/apt" "$WORK/debs"
    done < <(archive_mirrors)
    [ -n "${version:-}" ] || die "no HAProxy $BRANCH found:" \
        "${reasons:-no Debian mirror in the apt sources of this machine}." \
        "Install HAProxy $BRANCH yourself and point EDGE_HAPROXY at it."
    unpack || die "haproxy $version does not run from $DIR: $(tail -n 1 "$WORK/run.log" 2>/dev/null)"
    mv -f "$ROOTFS/haproxy" "$DIR/haproxy" || die "cannot write $DIR/haproxy"
    # Running processes keep the files of an earlier fetch; new ones come from here.
    for old in "$DIR"/root.*; do
        [ "$old" = "$ROOTFS" ] || rm -rf "$old"
    done
    ROOTFS=
    in_branch "${version%%[-+~]*}" || say "note: the suites have left branch $BRANCH; $version is newer"
    say "fetched $version from $mirror"
}

main() {
    [[ $BRANCH =~ ^[0-9]+\.[0-9]+$ ]] || die "the argument is a branch such as 3.2 or 3.4"
    dpkg --compare-versions "$BRANCH" ge "$MINIMUM" || die "HAProxy $MINIMUM is the oldest supported branch"
    is_ready && return
    command -v dpkg apt-get flock >/dev/null || die "needs a Debian system (dpkg, apt-get, flock);" \
        "elsewhere install HAProxy $BRANCH yourself and point EDGE_HAPROXY at it"
    mkdir -p "$DIR"
    exec 9>"$ROOT/.deps/haproxy-$BRANCH.lock"
    flock 9
    is_ready && return
    trap clean_up EXIT
    trap 'exit 130' INT TERM
    rm -f "$STAMP"
    link_system || fetch
    printf '%s\n' "$DIR" >"$STAMP.new"
    mv -f "$STAMP.new" "$STAMP"
    is_ready || die "$DIR/haproxy does not run"
}

main
