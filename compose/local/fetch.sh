#!/bin/bash
# Newer Debian builds of single programs in a private folder: what haproxy.sh and valkey.sh have in common.
#
# Sourced, not run. A program is taken from the machine's own Debian mirror (newer suites, archive.sh), unpacked with its
# libraries below $DIR, and bound to them, so that it is a plain executable which needs nothing of the system.
# Safe when several run at once. A finished fetch costs nothing the second time and needs no network. A tree that was
# copied elsewhere is noticed (the loader's path is absolute) and fetched again.
#
# The caller sets
#   TITLE            what is fetched, for messages: "HAProxy 3.2"
#   DIR              the folder that gets the programs; its name is that of the lock beside it
#   PROGRAM          the program that must be there and run
#   BRANCH           "3.2" or "8": the newest build of it is taken, of a later one when the suites have left it
#   SUITES           array of the suites that are looked at
#   ADVICE           what to do where nothing is found, one sentence
#   version_of FILE  a function that prints a program's version as "3.2.26", nothing when it does not run
# and calls
#   in_branch VERSION                        is it of $BRANCH?
#   fetch PACKAGES PROGRAM=PACKAGED...       leaves PROGRAM in $DIR, the packages' /usr/bin or /usr/sbin/PACKAGED; the
#                                            blank-separated packages have one version; prints the reason of a failure
#   fetch_once FUNCTION                      runs the function, which has to fill $DIR, unless that was done before

# The loader's path has to be the real one: trees may share a .deps through a link.
DIR=$(readlink -m "$DIR")
STAMP=$DIR/stamp
WORK=
ROOTFS=

# shellcheck source=compose/local/archive.sh
. "$HERE/archive.sh"

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { say "$*"; exit 1; }

# A Debian version without epoch, revision and suffixes: "5:7.0.15-1~deb12u5" is 7.0.15.
upstream_version() {
    local version=${1#*:}
    printf '%s\n' "${version%%[-+~]*}"
}

in_branch() { [[ $1 == "$BRANCH".* || $1 == "$BRANCH" ]]; }

# The stamp is written last and names the path that the programs are bound to.
is_ready() {
    [ -x "$DIR/$PROGRAM" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$DIR" ] && [ -n "$(version_of "$DIR/$PROGRAM")" ]
}

clean_up() {
    [ -z "$WORK" ] || rm -rf "$WORK"
    [ -z "$ROOTFS" ] || rm -rf "$ROOTFS"
}

# The newest version of a package on offer in the branch; when the suites have moved on, the newest of a later branch.
pick_version() {
    local package=$1 version plain best='' later=''
    while read -r version; do
        plain=$(upstream_version "$version")
        if in_branch "$plain"; then
            if [ -z "$best" ] || dpkg --compare-versions "$version" gt "$best"; then best=$version; fi
        elif dpkg --compare-versions "$plain" ge "$BRANCH"; then
            if [ -z "$later" ] || dpkg --compare-versions "$version" gt "$later"; then later=$version; fi
        fi
    done < <(archive_apt apt-cache madison "$package" 2>/dev/null | awk -F'|' '{ gsub(/ /, "", $2); print $2 }')
    printf '%s\n' "${best:-$later}"
}

# Downloads the packages and the libraries that the suites' own dependency rules give them, into $WORK/debs.
download() {
    local version=$1 packages
    shift
    packages=$(archive_apt apt-get install -s --no-install-recommends "${@/%/=$version}" 2>"$WORK/solve.log" |
        awk -v wanted=" $* " '$1 == "Inst" && (index(wanted, " " $2 " ") || $2 ~ /^z?lib/) {
            v = $3; sub(/^\(/, "", v); print $2 "=" v }')
    [ -n "$packages" ] || return 1
    mkdir -p "$WORK/debs"
    # shellcheck disable=SC2086  # one word a package
    (cd "$WORK/debs" && archive_apt apt-get download $packages) >"$WORK/download.log" 2>&1
}

# Unpacks the packages into a folder of their own and binds copies of the programs to the libraries there.
unpack() {
    local deb pair packaged loader rpath
    ROOTFS=$(mktemp -d "$DIR/root.XXXXXX")
    chmod 755 "$ROOTFS"
    for deb in "$WORK"/debs/*.deb; do
        dpkg -x "$deb" "$ROOTFS" || return 1
    done
    rm -rf "${ROOTFS:?}/usr/share"
    rpath=$(find "$ROOTFS" -type f -name 'lib*.so*' -printf '%h\n' | sort -u |
        grep -v '/gconv\|/ossl-modules\|/security' | paste -sd:)
    mkdir "$ROOTFS/bound"
    for pair in "$@"; do
        packaged=$(find "$ROOTFS/usr/bin" "$ROOTFS/usr/sbin" -name "${pair#*=}" -print -quit 2>/dev/null)
        [ -n "$packaged" ] || return 1
        loader=$(find "$ROOTFS" -name "$(basename "$(patchelf --print-interpreter "$packaged")")" -print -quit)
        [ -n "$loader" ] && [ -n "$rpath" ] || return 1
        cp "$packaged" "$ROOTFS/bound/${pair%%=*}"
        patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$rpath" "$ROOTFS/bound/${pair%%=*}" || return 1
    done
    "$ROOTFS/bound/$PROGRAM" -v >"$WORK/run.log" 2>&1
}

# Tries one mirror; prints the reason of a failure.
download_from() {
    local mirror=$1 keyring=$2 version
    shift 2
    if ! archive_open "$WORK/apt" "$mirror" "$keyring" "${SUITES[@]}"; then
        printf '%s: nothing reachable (%s)' "$mirror" "$(archive_reason)"
        return 1
    fi
    version=$(pick_version "$1")
    if [ -z "$version" ]; then
        printf '%s: no suite of %s has %s %s or newer' "$mirror" "${SUITES[*]}" "$1" "$BRANCH"
        return 1
    fi
    if ! download "$version" "$@"; then
        printf '%s: %s %s or its libraries could not be downloaded (%s)' "$mirror" "$1" "$version" \
            "$(cat "$WORK/solve.log" "$WORK/download.log" 2>/dev/null | sed -n '/^[EW]:/{p;q;}')"
        return 1
    fi
    printf '%s' "$version" >"$WORK/version"
}

fetch() {
    local packages mirror keyring reasons='' reason version='' old
    read -ra packages <<<"$1"
    shift
    command -v patchelf >/dev/null || die "patchelf is missing; run compose/local/deps.sh run"
    WORK=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/edge-fetch.XXXXXX")}
    while IFS=$'\t' read -r mirror keyring; do
        rm -rf "$WORK/apt" "$WORK/debs"
        if reason=$(download_from "$mirror" "$keyring" "${packages[@]}"); then
            version=$(cat "$WORK/version")
            break
        fi
        reasons+="${reasons:+; }$reason"
    done < <(archive_mirrors)
    if [ -z "$version" ]; then
        say "no $TITLE found: ${reasons:-no Debian mirror in the apt sources of this machine}."
        return 1
    fi
    unpack "$@" || die "${packages[0]} $version does not run from $DIR: $(tail -n 1 "$WORK/run.log" 2>/dev/null)"
    mv -f "$ROOTFS"/bound/* "$DIR/" || die "cannot write in $DIR"
    # Running processes keep the files of an earlier fetch; new ones come from here.
    for old in "$DIR"/root.*; do
        [ "$old" = "$ROOTFS" ] || rm -rf "$old"
    done
    ROOTFS=
    in_branch "$(upstream_version "$version")" || say "note: the suites have left branch $BRANCH; $version is newer"
    say "fetched ${packages[0]} $version from $mirror"
}

fetch_once() {
    is_ready && return
    command -v dpkg apt-get flock >/dev/null || die "needs a Debian system (dpkg, apt-get, flock). $ADVICE"
    mkdir -p "$DIR"
    exec 9>"$DIR.lock"
    flock 9
    is_ready && return
    trap clean_up EXIT
    trap 'exit 130' INT TERM
    rm -f "$STAMP"
    "$1" || die "$ADVICE"
    printf '%s\n' "$DIR" >"$STAMP.new"
    mv -f "$STAMP.new" "$STAMP"
    is_ready || die "$DIR/$PROGRAM does not run"
}
