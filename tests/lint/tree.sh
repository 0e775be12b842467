#!/bin/bash
# Sourced by the lint scripts: goes to the repository's root and lists the files that are looked at.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

# The files that are or will be committed, one a line, that match one of the git path patterns given, such as "*.c".
tree_files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -c core.quotePath=off ls-files --cached --others --exclude-standard -- "$@"
    else
        local pattern
        for pattern in "$@"; do
            find . \( -name .git -o -name .deps -o -name node_modules -o -name __pycache__ -o -path ./build \) -prune \
                -o -type f -path "./$pattern" -print | sed 's|^\./||'
        done
    fi | sort -u | while IFS= read -r file; do
        if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
}

# Prints the closing line of a check and returns its status: tree_verdict NAME FAULTS
tree_verdict() {
    if [ -n "$2" ]; then
        printf '%s\n' "$2"
        printf 'lint %s: %s fault(s)\n' "$1" "$(printf '%s\n' "$2" | wc -l)"
        return 1
    fi
    printf 'lint %s: ok\n' "$1"
}
