#!/bin/bash
# Include arrows: spoa, admin -> common -> schemas; spoa and admin never meet; an include is spelled from the root;
# a header ending in _priv.h is included only inside its own folder.
set -euo pipefail
. "$(dirname "$0")/tree.sh"

mapfile -t files < <(tree_files 'common/*.[ch]' 'spoa/*.[ch]' 'admin/*.[ch]' 'tests/*.[ch]' '*.def')
[ ${#files[@]} -gt 0 ] || { tree_verdict arrows ""; exit; }

faults=$(awk '
    BEGIN {
        allowed["schemas"] = " schemas "
        allowed["common"] = " common schemas "
        allowed["spoa"] = " spoa common schemas "
        allowed["admin"] = " admin common schemas "
        allowed["tests"] = " tests spoa admin common schemas "
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        target = $0; sub(/^[^"]*"/, "", target); sub(/".*/, "", target)
        from = FILENAME; sub(/\/.*/, "", from)
        to = target; sub(/\/.*/, "", to)
        where = FILENAME ":" FNR ": "
        if (target !~ /\// || !(to in allowed))
            print where "\"" target "\" is not spelled from the root (\"common/base/str.h\")"
        else if (index(allowed[from], " " to " ") == 0)
            print where from " may not include " to " (\"" target "\")"
        if (target ~ /_priv\.h$/) {
            here = FILENAME; sub(/\/[^\/]*$/, "", here)
            there = target; sub(/\/[^\/]*$/, "", there)
            if (here != there) print where "\"" target "\" is private to " there "/"
        }
    }' "${files[@]}")
tree_verdict arrows "$faults"
