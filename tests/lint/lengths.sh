#!/bin/bash
# Lengths in C, Lua and Python: a file has at most 400 lines, a function at most 70.
# A file may be longer when one of its first five lines says "lint: long because ..."; a function may not.
set -euo pipefail
. "$(dirname "$0")/tree.sh"

FILE_MAX=400
FUNCTION_MAX=70

mapfile -t files < <(tree_files '*.c' '*.h' '*.lua' '*.py')
[ ${#files[@]} -gt 0 ] || { tree_verdict lengths ""; exit; }

long_files() {
    local file n
    for file in "${files[@]}"; do
        n=$(wc -l <"$file")
        if [ "$n" -gt "$FILE_MAX" ] && ! head -n 5 "$file" | grep -q 'lint: long because [^ ]'; then
            printf '%s: %s lines (at most %s, or a first line that says why)\n' "$file" "$n" "$FILE_MAX"
        fi
    done
}

# ctags knows where a function of C or Python ends.
long_functions() {
    ctags -x --languages=C,Python --map-C=+.h --kinds-C=f --kinds-Python=fm --_xformat='%F	%N	%n	%{end}' "${files[@]}" |
        awk -F'\t' -v max="$FUNCTION_MAX" '$4 - $3 + 1 > max {
            printf "%s:%s: function %s has %d lines (at most %d)\n", $1, $3, $2, $4 - $3 + 1, max }'
}

# In Lua a function ends at the first "end" that is indented like its first line.
long_lua_functions() {
    local file
    for file in "${files[@]}"; do
        [[ $file == *.lua ]] || continue
        awk -v max="$FUNCTION_MAX" -v file="$file" '
            { match($0, /^[ \t]*/); depth = RLENGTH }
            /^[ \t]*end([^A-Za-z0-9_]|$)/ && (depth in start) {
                if (NR - start[depth] + 1 > max)
                    printf "%s:%d: function has %d lines (at most %d)\n", file, start[depth], NR - start[depth] + 1, max
                delete start[depth]
            }
            /^[ \t]*--/ || /(^|[^A-Za-z0-9_])end([^A-Za-z0-9_]|$)/ { next }
            /(^|[^A-Za-z0-9_])function([^A-Za-z0-9_]|$)/ { start[depth] = NR }
        ' "$file"
    done
}

tree_verdict lengths "$(long_files; long_functions; long_lua_functions)"
