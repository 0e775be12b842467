#!/bin/bash
# Fuzzes for a given time, shared evenly among the targets; a crash becomes a corpus file, replayed by `make corpus`.
#
#   tests/fuzz/fuzz.sh BUILD_DIR SECONDS NAME...      BUILD_DIR holds the libFuzzer binaries fuzz_NAME
#
# New interesting inputs stay in BUILD_DIR/corpus; only crashes are copied into tests/fuzz/corpus/NAME.
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$1
seconds=$2
shift 2
share=$((seconds / $# > 0 ? seconds / $# : 1))
failed=()

for name in "$@"; do
    found=$build/crashes/$name
    kept=tests/fuzz/corpus/$name
    mkdir -p "$build/corpus/$name" "$found" "$kept"
    echo "fuzz $name: $share s"
    if "$build/fuzz_$name" -max_total_time="$share" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -verbosity=0 -artifact_prefix="$found/" "$build/corpus/$name" "$kept"; then
        echo "fuzz $name: no crash"
        continue
    fi
    failed+=("$name")
    for crash in "$found"/*; do
        [ -f "$crash" ] || continue
        mv "$crash" "$kept/"
        echo "fuzz $name: crash kept as $kept/$(basename "$crash"); it is replayed by 'make corpus' from now on"
    done
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: crashes in ${failed[*]}"
    exit 1
fi
echo "fuzz: $# target(s), $share s each, no crash"
