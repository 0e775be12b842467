#!/bin/bash
# Puts a HAProxy of the wanted branch at .deps/haproxy-BRANCH/haproxy without touching the system.
#
#   compose/local/haproxy.sh [3.2|3.4]        (default 3.2)
#
# The system's own haproxy is linked when it is of that branch. Otherwise the newest Debian build of the branch comes as
# fetch.sh says. It must stay a plain executable: on a reload HAProxy's master executes itself again, which fails for a
# program started through a private dynamic loader.
set -euo pipefail

BRANCH=${1:-3.2}
SUITES=(forky sid experimental trixie-backports bookworm-backports)
MINIMUM=3.2

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
DIR=$ROOT/.deps/haproxy-$BRANCH
PROGRAM=haproxy
TITLE="HAProxy $BRANCH"
ADVICE="Install HAProxy $BRANCH yourself and point EDGE_HAPROXY at it."

# shellcheck source=compose/local/fetch.sh
. "$HERE/fetch.sh"

version_of() { "$1" -v 2>/dev/null | sed -n 's/^HAProxy version \([0-9][0-9.]*\).*/\1/p;q' || true; }

# Links the system's haproxy when it is of the branch.
link_system() {
    local own
    own=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v haproxy) || return 1
    in_branch "$(version_of "$own")" || return 1
    ln -sfn "$own" "$DIR/haproxy"
    say "using the system's $own ($(version_of "$own"))"
}

provide() { link_system || fetch haproxy haproxy=haproxy; }

[[ $BRANCH =~ ^[0-9]+\.[0-9]+$ ]] || die "the argument is a branch such as 3.2 or 3.4"
dpkg --compare-versions "$BRANCH" ge "$MINIMUM" || die "HAProxy $MINIMUM is the oldest supported branch"
fetch_once provide
