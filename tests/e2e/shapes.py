"""Requests of every shape that HAProxy treats differently, and the headers that no client may set."""

import re

# How a request reaches each of HAProxy's three backends, which hold the same rules.
SHAPES = {
    "plain": {},
    "body": {"trailers": [], "body": b"x" * 5000},
    "stream": {"headers": [("Accept", "text/event-stream")]},
}

FORGED = [
    "X-Edge-Client-IP", "x_edge_client_ip", "X-Edge-Auth-Sub", "X_EDGE_AUTH_SUB", "X-Edge_Geo-Country", "x-edge-", "X-Edge-New",
    "X-Forwarded-For", "x_forwarded_for", "X-FORWARDED-PROTO", "X_Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port",
    "x-forwarded_prefix", "Forwarded", "FORWARDED", "X-Request-Id", "x_request_id", "X-Request_ID", "X_REQUEST-ID",
    "X.Edge.Client.IP", "x~edge+auth!sub", "X.Forwarded.For", "x*request*id",
]  # fmt: skip


def shaped(shape, headers=()):
    """Arguments of fetch for a request of that shape."""
    return {**SHAPES[shape], "headers": list(SHAPES[shape].get("headers", [])) + list(headers)}


def values(received, name):
    return [v for n, v in received["headers"] if n.lower() == name]


def same_name(name):
    """As servers compare that map names to variables: whatever is no letter or digit is one character."""
    return re.sub(r"[^a-z0-9]", "-", name.lower())


def managed(received):
    """The headers that only the edge may write, whatever their spelling."""
    prefixes = ("x-edge-", "x-forwarded-")
    return sorted(
        (n, v) for n, v in received["headers"] if same_name(n).startswith(prefixes) or same_name(n) in ("forwarded", "x-request-id")
    )
