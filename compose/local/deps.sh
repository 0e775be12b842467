#!/bin/bash
# Installs the Debian packages of the named groups (compose/local/apt-packages.txt) that are missing.
#
#   compose/local/deps.sh GROUP...        e.g. deps.sh build run test
#
# Needs root or a password-less sudo; without them it names the missing packages and the command, and fails.
# When nothing is missing it touches neither the network nor the package database.
#
# No service is started. Debian starts a daemon such as nginx when its package is installed; the one switch that every
# init system honours is /usr/sbin/policy-rc.d, so a temporary one stands there during the installation. It says no only
# while this process lives: a leftover after a kill -9 is without effect. One that exists already is left alone.
# Services that were installed by us are also disabled, so that they take no port after a reboot.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
LIST=$HERE/apt-packages.txt
SERVICES=(nginx prometheus) # what Debian would start of our packages; of prometheus only promtool is used
POLICY=/usr/sbin/policy-rc.d
LOCK=/run/edge-proxy-deps.lock

say() { printf 'deps.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Prints the first of "a|b" that the release knows; the first at all when none is known.
choose() {
    local name
    for name in ${1//|/ }; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    printf '%s\n' "${1%%|*}"
}

# Prints the lines of the groups of which no alternative is installed.
missing_of() {
    local group alternatives name
    for group in "$@"; do
        awk -v g="$group" '$1 == g { print $2 }' "$LIST"
    done | sort -u | while read -r alternatives; do
        for name in ${alternatives//|/ }; do
            if is_installed "$name"; then continue 2; fi
        done
        printf '%s\n' "$alternatives"
    done
}

# Quiet when it works, everything when it does not.
apt_install() {
    local log status=0
    log=$(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        install -y --no-install-recommends "$@" 2>&1 </dev/null) || status=$?
    [ "$status" = 0 ] || printf '%s\n' "$log" >&2
    return "$status"
}

# Another apt may hold the lists for a while.
apt_update() {
    local try
    for try in 1 2 3; do
        apt-get -qq update </dev/null && return
        say "apt-get update failed (attempt $try of 3)"
        sleep $((try * 5))
    done
    return 1
}

forbid_starts() {
    # The lock is held: one of ours can only be a leftover.
    ! grep -qs 'edge-proxy deps.sh' "$POLICY" || rm -f "$POLICY"
    [ ! -e "$POLICY" ] || return 0
    cat >"$POLICY" <<SCRIPT
#!/bin/sh
# edge-proxy deps.sh: no service starts while process $$ installs packages
kill -0 $$ 2>/dev/null && exit 101
exit 0
SCRIPT
    chmod 755 "$POLICY"
    trap allow_starts EXIT
    trap 'exit 130' INT TERM
}

allow_starts() { rm -f "$POLICY"; }

install_missing() {
    local name alternatives packages=() new=()
    for name in "${SERVICES[@]}"; do is_installed "$name" || new+=("$name"); done
    forbid_starts
    # An empty or old package list shows as an unknown name or a download that is gone: load it and try again.
    for alternatives in "$@"; do packages+=("$(choose "$alternatives")"); done
    say "installing ${packages[*]}"
    if ! apt_install "${packages[@]}"; then
        say "loading the package lists and trying again"
        apt_update || die "the package lists could not be loaded; see the lines above"
        packages=()
        for alternatives in "$@"; do packages+=("$(choose "$alternatives")"); done
        apt_install "${packages[@]}" || die "apt-get could not install ${packages[*]}; see the lines above"
    fi
    for name in "${new[@]}"; do
        is_installed "$name" || continue
        update-rc.d "$name" disable >/dev/null 2>&1 || say "note: the $name service stays enabled at boot"
    done
}

main() {
    local group missing
    [ $# -gt 0 ] || die "usage: deps.sh GROUP...; groups:" \
        "$(awk '/^[a-z]/ { print $1 }' "$LIST" | sort -u | paste -sd' ')"
    for group in "$@"; do
        grep -q "^${group}[[:space:]]" "$LIST" || die "no group '$group' in $LIST"
    done
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "no Debian package manager here: taking the tools of the groups '$*' for granted"
        return
    fi
    mapfile -t missing < <(missing_of "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        if sudo -n true 2>/dev/null; then exec sudo -n "$HERE/deps.sh" "$@"; fi
        die "missing packages: ${missing[*]%%|*}. Install them with:" \
            "sudo apt-get install --no-install-recommends ${missing[*]%%|*}"
    fi
    exec 9>"$LOCK"
    flock 9
    mapfile -t missing < <(missing_of "$@")
    [ ${#missing[@]} -eq 0 ] || install_missing "${missing[@]}"
    mapfile -t missing < <(missing_of "$@")
    [ ${#missing[@]} -eq 0 ] || die "still missing after the installation: ${missing[*]}"
}

main "$@"
