#!/bin/bash
# Words that mark unfinished work have no place in the tree: it is finished or it is not in it.
set -euo pipefail
. "$(dirname "$0")/tree.sh"

# Spelled apart so that this file does not find itself. Fuzz inputs are bytes, not text.
pattern='\b(TO''DO|FIX''ME|XX''X|HA''CK)\b'
mapfile -t files < <(tree_files "*" | grep -v '^tests/fuzz/corpus/')
[ ${#files[@]} -gt 0 ] || { tree_verdict words ""; exit; }
tree_verdict words "$(grep -InHE "$pattern" "${files[@]}" || true)"
