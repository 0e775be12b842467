#!/bin/bash
# The generated reference pages and schemas/vocabulary.json are what the tables and templates say.
set -euo pipefail
. "$(dirname "$0")/tree.sh"

tree_verdict reference "$(PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 schemas/reference/generate.py --check || true)"
