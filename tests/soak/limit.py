"""Three edges, one token bucket, 100,000 requests: none too many passes and no fail mode ever decides: `make soak-limit`. Prints one JSON
line; what does not hold ends it with the reason."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from shared_limit import prove
from upstream import Upstream

if __name__ == "__main__":
    with Upstream() as upstream:
        print(json.dumps(prove(upstream.url, n_edges=3, n_requests=100_002, limit=500, period_ms=1000, burst=1000)))
