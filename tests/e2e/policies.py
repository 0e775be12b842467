"""Policies of the tests: a valid one for every kind of answer, to which a test adds its rules."""

KINDS = {
    "bad_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "payload_too_large": 413,
    "rate_limited": 429,
    "bad_gateway": 502,
    "unavailable": 503,
    "overloaded": 503,
    "gateway_timeout": 504,
}


def template(status, body, content_type="application/json"):
    return {"status": status, "content_type": content_type, "body": body}


def policy(config=(), limits=(), headers=(), responses=None, version=1, **members):
    """Every kind answers {"kind","status","request_id"} in JSON unless a rule says otherwise."""
    templates = {
        kind: template(
            status, f'{{"kind":"{kind}","status":{{{{status}}}},"retry_after":{{{{retry_after}}}},"request_id":"{{{{request_id}}}}"}}'
        )
        for kind, status in KINDS.items()
    }
    templates.update(responses or {})
    return {
        "schema": 4,
        "version": version,
        "global": {"defaults": {"responses": {kind: kind for kind in KINDS}}, "responses": templates},
        "config_rules": list(config),
        "rate_limit_rules": list(limits),
        "request_header_rules": list(headers),
        **members,
    }


def under(prefix):
    return f'starts_with(http.request.uri.path, "{prefix}")'


def config_rule(rule_id, expression, **settings):
    return {"id": rule_id, "expression": expression, "settings": settings}


def limit_rule(rule_id, expression, limit, period, burst, action="block"):
    return {
        "id": rule_id,
        "expression": expression,
        "algorithm": "token_bucket",
        "limit": limit,
        "period": period,
        "burst": burst,
        "key": ["ip"],
        "action": action,
    }


def header_rule(rule_id, expression, *sets):
    return {"id": rule_id, "expression": expression, "ops": [{"op": "set", "name": n, "value": v} for n, v in sets]}
