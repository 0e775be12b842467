#!/bin/bash
# Runs `make test` in a Debian 13 made by debootstrap from this machine's own mirror, under .deps/debian13/.
#
#   tests/debian13.sh [TARGET...]         (default: test)
#
# The tracked files are copied in; packages, HAProxy and Valkey are fetched inside, with the proxy, credentials and
# certificates of this machine's apt. Mounts live in a mount namespace of their own and vanish with the run.
# Where the machine refuses debootstrap or chroot, the suite is skipped, and the reason is printed. A mirror that fails
# is an error, not a reason.
set -euo pipefail

SUITE=trixie
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
DIR=$ROOT/.deps/debian13
SYSTEM=$DIR/root

# shellcheck source=compose/local/archive.sh
. "$ROOT/compose/local/archive.sh"

say() { printf 'debian13: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
skip() {
    echo "debian13: skipped: $*"
    exit 0
}

# debootstrap downloads with wget, which knows proxies only from the environment.
export_proxies() {
    local HTTP='' HTTPS=''
    eval "$(apt-config shell HTTP Acquire::http::Proxy HTTPS Acquire::https::Proxy)"
    [ -z "$HTTP" ] || [ "$HTTP" = DIRECT ] || export http_proxy="${http_proxy:-$HTTP}"
    [ -z "$HTTPS" ] || [ "$HTTPS" = DIRECT ] || export https_proxy="${https_proxy:-$HTTPS}"
}

bootstrap() {
    local mirror=$1 keyring=$2 reason refusals='permission denied|not permitted|cannot install into target|noexec|nodev'
    local options=(--variant=minbase '--include=ca-certificates,make')
    [ ! -f "$DIR/stamp" ] || return 0
    rm -rf "$SYSTEM"
    mkdir -p "$SYSTEM"
    [ -z "$keyring" ] || options+=(--keyring="$keyring")
    say "making a Debian 13 in $SYSTEM"
    if ! debootstrap "${options[@]}" "$SUITE" "$SYSTEM" "$mirror" >"$DIR/debootstrap.log" 2>&1; then
        reason=$(grep -iE "$refusals" "$DIR/debootstrap.log" | tail -n 1) || true
        [ -z "$reason" ] || skip "debootstrap is refused here: $reason"
        die "debootstrap failed: $(tail -n 1 "$DIR/debootstrap.log") (all of it: $DIR/debootstrap.log)"
    fi
    : >"$DIR/stamp"
}

# Gives the system inside the network settings that apt uses outside.
carry_settings() {
    local mirror=$1 keyring=$2 file
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        [ ! -r "$file" ] || cp --dereference --remove-destination "$file" "$SYSTEM$file"
    done
    for file in /etc/apt/auth.conf /etc/apt/auth.conf.d/*; do
        [ ! -f "$file" ] || install -D -m 600 "$file" "$SYSTEM$file"
    done
    [ -z "$keyring" ] || install -D -m 644 "$keyring" "$SYSTEM$keyring"
    apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries|ForceIPv)' \
        >"$SYSTEM/etc/apt/apt.conf.d/10outside" || true
    printf 'deb %s%s %s main\n' "${keyring:+[signed-by=$keyring] }" "$mirror" "$SUITE" >"$SYSTEM/etc/apt/sources.list"
}

# HAProxy, Valkey and package stamps of an earlier run stay; everything else is the tracked tree, fresh.
copy_tree() {
    mkdir -p "$SYSTEM/edge-proxy"
    find "$SYSTEM/edge-proxy" -mindepth 1 -maxdepth 1 ! -name .deps -exec rm -rf {} +
    git -C "$ROOT" ls-files -z | (cd "$ROOT" && xargs -0 -r ls -d 2>/dev/null) |
        tar -C "$ROOT" --no-recursion -T - -c | tar -C "$SYSTEM/edge-proxy" -x
    [ -f "$SYSTEM/edge-proxy/Makefile" ] || die "no tracked files to copy: commit them first"
}

# Runs in the mount namespace.
run_inside() {
    mount -t proc proc "$SYSTEM/proc" 2>/dev/null || say "note: /proc cannot be mounted"
    mount --rbind /dev "$SYSTEM/dev" 2>/dev/null || say "note: /dev cannot be mounted"
    exec chroot "$SYSTEM" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive CI=true \
        http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
        make -C /edge-proxy --no-print-directory "$@" </dev/null
}

main() {
    local mirror keyring
    if [ "${1:-}" = --inside ]; then
        shift
        run_inside "$@"
    fi
    [ $# -gt 0 ] || set -- test
    [ "$(id -u)" = 0 ] || skip "needs root for debootstrap and chroot"
    command -v debootstrap >/dev/null || skip "debootstrap is not installed; run compose/local/deps.sh chroot"
    mkdir -p "$DIR"
    exec 9>"$DIR/lock"
    flock -n 9 || die "another run uses $DIR"
    export_proxies
    IFS=$'\t' read -r mirror keyring < <(archive_mirrors) || die "no Debian mirror in the apt sources of this machine"
    bootstrap "$mirror" "$keyring"
    chroot "$SYSTEM" /bin/true 2>/dev/null || skip "chroot is refused here"
    carry_settings "$mirror" "$keyring"
    copy_tree
    unshare --mount --propagation private true 2>/dev/null || skip "a mount namespace is refused here"
    unshare --mount --propagation private "$0" --inside "$@" || die "make $* failed in Debian 13"
    say "make $* passed in Debian 13"
}

main "$@"
