"""What the benchmark measures: its requests and its rows, as data."""

from fnmatch import fnmatch
from typing import NamedTuple


class Request(NamedTuple):
    """A target, and how many rules of realistic.json it matches: a phase's other rules are evaluated and do not match."""

    target: str
    config_rules: int
    rate_limit_rules: int
    header_rules: int


REQUESTS = {
    "catalogue": Request("/catalogue/shoes/trail-runner-42?colour=blue&size=43", 2, 0, 0),
    "account": Request("/account/orders/recent?page=2", 2, 0, 5),
    "search": Request("/search?q=trail+shoes", 2, 1, 0),
    "api": Request("/api/v2/products?page=2", 2, 0, 0),
}

HOST = "www.shop.example"
# What a browser sends through a CDN.
HEADERS = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language": "en-GB,en;q=0.9,de;q=0.7",
    "Accept-Encoding": "gzip, deflate, br",
    "Cache-Control": "max-age=0",
    "Referer": "https://www.shop.example/catalogue/shoes?sort=price",
    "Sec-Ch-Ua-Platform": '"Linux"',
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "navigate",
    "Cookie": "session=4f1c9a72b0e84d57a6d3c2e1f09b8a76; basket=3; consent=necessary; currency=EUR; visitor=1764480000.81273645",
    "Via": "2.0 0a1b2c3d4e5f.cdn.example (CDN)",
    "X-Forwarded-For": "203.0.113.200",
    "X-Cdn-Request-Id": "Zb1x9oYJm0v3kq2sW8LrT7uN5cDfGhPa",
}


# What a CDN adds for an edge that knows its clients by it, and the settings of such an edge.
FRONT_HEADERS = {
    "CloudFront-Viewer-Address": "203.0.113.200:46532",
    "CloudFront-Forwarded-Proto": "https",
    "CloudFront-Viewer-Http-Version": "2.0",
    "CloudFront-Viewer-Country": "SE",
    "CloudFront-Viewer-ASN": "64500",
    "CloudFront-Viewer-JA4-Fingerprint": "t13d1516h2_8daaf6152771_02713d6af862",
    "X-Origin-Secret": "7f2c1e0a95b84d63a1f0c2e4b6d8907a",
    "X-Request-Id": "3c1f6b7e-5a0d-4c2b-9e8f-7a6b5c4d3e2f",
}
FRONT_SETTINGS = {
    "CLIENT_IP_SOURCE": "cloudfront",
    "TRUSTED_PROXIES": "127.0.0.0/8,10.0.0.0/8,2001:db8::/32",
    "VIEWER_HEADERS": "ja4=CloudFront-Viewer-JA4-Fingerprint",
    "INGRESS_SECRET_HEADER": "X-Origin-Secret",
    "INGRESS_SECRET": "another-one-that-is-being-retired,7f2c1e0a95b84d63a1f0c2e4b6d8907a",
}


# What a page of another origin adds, and what realistic.json is given for it: each part of it does its work on every request.
PAGE_HEADERS = {"Origin": "https://www.shop.example"}
PAGE_GLOBAL = {
    "backstop": {"limit": 1000000, "period": "1s"},
    "cors_policies": {
        "web": {
            "origins": ["https://www.shop.example", "https://m.shop.example"],
            "methods": ["GET", "PUT"],
            "exposed_headers": ["retry-after"],
            "credentials": True,
        }
    },
    "locale": {"enabled": True, "supported": ["en", "de", "sv"], "default": "en"},
}
PAGE_RULE = {"id": "for-pages", "expression": "true", "settings": {"cors_policy": "web"}}


class Row(NamedTuple):
    """One side: a server of sides.py under load. over: the rows whose CPU per request its own is divided by, round by round.
    latency: its time to answer is measured too."""

    id: str
    title: str
    server: str
    haproxy: str  # version; "" where none is part of the side
    request: str
    over: tuple = ()
    latency: bool = False
    needs_store: bool = False

    def headers(self):
        return HEADERS | {"front": FRONT_HEADERS, "page": PAGE_HEADERS}.get(self.server, {})


ROWS = [
    Row("plain-3.2", "plain HAProxy 3.2", "plain", "3.2", "catalogue", latency=True),
    Row("bare-3.2", "edge 3.2, no rules", "bare", "3.2", "catalogue", ("plain-3.2",)),
    Row("unruled-3.2", "edge 3.2, realistic without header rules", "unruled", "3.2", "catalogue", ("plain-3.2",)),
    Row("realistic-3.2", "edge 3.2, realistic", "realistic", "3.2", "catalogue", ("plain-3.2", "unruled-3.2"), latency=True),
    Row("page-3.2", "edge 3.2, realistic with CORS, locale and backstop", "page", "3.2", "catalogue", ("plain-3.2", "realistic-3.2")),
    Row("front-3.2", "edge 3.2, realistic, clients known by a CDN's headers", "front", "3.2", "catalogue", ("plain-3.2",), latency=True),
    Row("api-3.2", "edge 3.2, realistic, the API with pages of its own", "realistic", "3.2", "api", ("plain-3.2",)),
    Row("operations-3.2", "edge 3.2, realistic, five header operations", "realistic", "3.2", "account", ("plain-3.2",)),
    Row("plain-3.4", "plain HAProxy 3.4", "plain", "3.4", "catalogue"),
    Row("realistic-3.4", "edge 3.4, realistic", "realistic", "3.4", "catalogue", ("plain-3.4",)),
    Row("page-3.4", "edge 3.4, realistic with CORS, locale and backstop", "page", "3.4", "catalogue", ("plain-3.4", "realistic-3.4")),
    Row("front-3.4", "edge 3.4, realistic, clients known by a CDN's headers", "front", "3.4", "catalogue", ("plain-3.4",)),
    Row("operations-3.4", "edge 3.4, realistic, five header operations", "realistic", "3.4", "account", ("plain-3.4",)),
    Row("unrecorded-3.2", "edge 3.2, realistic, two agents, without records", "unrecorded", "3.2", "catalogue", ("plain-3.2",)),
    Row("recorded-3.2", "the same with its records, in two rings", "recorded", "3.2", "catalogue", ("plain-3.2", "unrecorded-3.2")),
    Row("unrecorded-3.4", "edge 3.4, realistic, two agents, without records", "unrecorded", "3.4", "catalogue", ("plain-3.4",)),
    Row("recorded-3.4", "the same with its records, in two rings", "recorded", "3.4", "catalogue", ("plain-3.4", "unrecorded-3.4")),
    Row("nginx-limit", "nginx + Lua, one Valkey limit", "peer", "", "search", ("plain-3.2",), True, True),
    Row("nginx-limit-log", "the same, edge's headers and a line a request", "peer-log", "", "search", ("plain-3.2",), False, True),
    Row("limit-3.2", "edge 3.2, one Valkey limit", "limit", "3.2", "search", ("plain-3.2", "nginx-limit", "nginx-limit-log"), False, True),
    Row(
        "realistic-limit-3.2", "edge 3.2, realistic, one Valkey limit", "realistic-limit", "3.2", "search",
        ("plain-3.2", "nginx-limit", "nginx-limit-log"), True, True,
    ),
]  # fmt: skip

LATENCY_BASE = "plain-3.2"


def selected(patterns):
    """Rows of which CPU and rows of which latency is measured, in table order; what they are compared with comes along."""
    names = {row.id for row in ROWS} | {f"latency-{row.id}" for row in ROWS if row.latency}
    unknown = [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in names)]
    if unknown:
        raise ValueError(f"no such rows: {', '.join(unknown)}; there are: {', '.join(sorted(names))}")
    wanted = {name for name in names if not patterns or any(fnmatch(name, pattern) for pattern in patterns)}
    for row in ROWS:
        if row.id in wanted:
            wanted.update(row.over)
    if any(name.startswith("latency-") for name in wanted):
        wanted.add(f"latency-{LATENCY_BASE}")
    return [row for row in ROWS if row.id in wanted], [row for row in ROWS if f"latency-{row.id}" in wanted]
