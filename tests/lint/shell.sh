#!/bin/bash
# Runs shellcheck over every shell script, with the settings of .shellcheckrc.
set -euo pipefail
. "$(dirname "$0")/tree.sh"

mapfile -t files < <(tree_files '*.sh' '.ci/run')
[ ${#files[@]} -gt 0 ] || { tree_verdict shell ""; exit; }
faults=$(shellcheck --format=gcc "${files[@]}" || true)
tree_verdict shell "$faults"
