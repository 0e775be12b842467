#!/bin/bash
# Puts a Valkey 8 or newer at .deps/valkey-8/ without touching the system: valkey-server, valkey-cli, valkey-benchmark.
#
#   compose/local/valkey.sh
#
# The system's own are linked when they are new enough. Otherwise the newest Debian build of Valkey 8 comes as fetch.sh
# says. Where no Debian suite with Valkey can be reached, Redis 7 or newer, which speaks the same protocol and
# runs the same scripts, takes its place under Valkey's names; that is said.
set -euo pipefail

BRANCH=8
SUITES=(trixie bookworm-backports forky sid)

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
DIR=$ROOT/.deps/valkey-8
PROGRAM=valkey-server
TITLE="Valkey 8"
ADVICE="Install Valkey 8 yourself and point EDGE_VALKEY at its valkey-server."

# shellcheck source=compose/local/fetch.sh
. "$HERE/fetch.sh"

version_of() { "$1" --version 2>/dev/null | sed -n 's/^\(Valkey\|Redis\) server v=\([0-9][0-9.]*\).*/\2/p;q' || true; }

# Links the system's NAME-server and its tools when it is of $BRANCH or newer.
link_system() {
    local name=$1 own tool
    own=$(PATH=$PATH:/usr/sbin:/usr/local/bin command -v "$name-server") || return 1
    dpkg --compare-versions "$(version_of "$own")" ge "$BRANCH" || return 1
    ln -sfn "$own" "$DIR/valkey-server"
    for tool in cli benchmark; do
        [ ! -x "$(dirname "$own")/$name-$tool" ] || ln -sfn "$(dirname "$own")/$name-$tool" "$DIR/valkey-$tool"
    done
    say "using the system's $own ($(version_of "$own"))"
}

fetch_as_valkey() {
    local name=$1
    fetch "$name-server $name-tools" "valkey-server=$name-server" "valkey-cli=$name-cli" "valkey-benchmark=$name-benchmark"
}

provide() {
    if link_system valkey || fetch_as_valkey valkey; then return; fi
    BRANCH=7
    TITLE="Redis 7"
    SUITES=(bookworm "${SUITES[@]}")
    link_system redis || fetch_as_valkey redis || return 1
    say "NOTE: this is Redis $(version_of "$DIR/valkey-server"), not Valkey, under the name $DIR/valkey-server"
}

fetch_once provide
