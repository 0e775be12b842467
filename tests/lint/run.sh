#!/bin/bash
# Runs every check of this folder, all of them even when one fails; the build checks are in the Makefile.
set -uo pipefail
. "$(dirname "$0")/tree.sh"

failed=()
for check in arrows lengths words shell reference; do
    "tests/lint/$check.sh" || failed+=("$check")
done
if [ -f tests/lint/wire.py ]; then
    PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/lint/wire.py || failed+=(wire)
else
    echo "lint wire: skipped: there is no tests/lint/wire.py"
fi
if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: ${failed[*]}"
    exit 1
fi
echo "lint: all checks passed"
