"""What pages of other origins may read through the edge and what not: the policy, and one row for each thing that a page tries."""

import json
from dataclasses import dataclass, field

from policies import config_rule, limit_rule, policy, template, under

NETWORK_ERROR = {"error": "TypeError"}  # all that a script is told
# A preflight that says no: the request itself is not sent.
UNSENT = {**NETWORK_ERROR, "reached": 0, "decided": {"preflight": 1}}
LISTED, MORE, STRANGER = "listed", "more", "stranger"  # pages; the first two are in the lists of allowed origins
BODY_LIMIT = 1000
JSON_TYPE = {"content-type": "application/json"}
INCLUDE = {"credentials": "include"}
RATE_HEADERS = ["ratelimit", "ratelimit-policy", "retry-after"]


@dataclass
class Case:
    """One thing that a page tries. at: which of the edges. wanted: members of what the page reports; `headers`: some that it could read,
    `shown`: their names, `hidden`: names that it could not, `allowed`: whose origin the answer says, `kind`: which answer of the edge, `request`:
    members of what the upstream got; and for its path, over the whole run: `reached`: requests at the upstream, `decided`: decisions of the edge."""

    name: str
    target: str
    wanted: dict
    options: dict = field(default_factory=dict)
    page: str = LISTED
    at: str = "edge"
    way: str = "fetched"


def document(listed, more):
    """listed, more: origins. The first segment of a path names the request's CORS policy; there is none for any other."""
    both, put = [listed, more], ["PUT", "PATCH"]
    shown = ["access-control-allow-origin", "vary", "x-shown"]
    kept = {"credentials": True, "max_age": "10m"}
    cors = {
        "list": {"origins": both, "methods": put, "request_headers": ["content-type", "x-page"], "exposed_headers": shown, **kept},
        "bare": {"origins": both, "methods": put},
        "telling": {"origins": both, "exposed_headers": RATE_HEADERS},
        "forgetful": {"origins": both, "methods": put, "max_age": "0s"},
        "token": {"origins": both, "request_headers": ["authorization"], "credentials": True},
        "one": {"origins": [listed], "methods": put, "exposed_headers": shown},
        "any": {"origins": ["*"], "methods": ["*"], "request_headers": ["*"], "exposed_headers": ["*"]},
        "anytoken": {"origins": ["*"], "request_headers": ["*", "authorization"]},
    }
    own = {"bad_gateway": template(502, '{"kind":"own_bad_gateway"}'), "gateway_timeout": template(504, '{"kind":"own_gateway_timeout"}')}
    config = [config_rule(name, under(f"/{name}/"), cors_policy=name) for name in cors]
    config += [
        config_rule("shut", under("/list/shut"), block="block"),
        config_rule("shut-to-all", under("/none/shut"), block="block"),
        config_rule("small", under("/list/small"), body_limit=BODY_LIMIT),
        config_rule("slow", under("/list/slow"), upstream_timeout="200ms", responses={"gateway_timeout": "gateway_timeout_own"}),
        config_rule("gone", under("/list/gone"), responses={"bad_gateway": "bad_gateway_own"}),
        config_rule("never", under("/list/never"), cors_policy="none"),
        config_rule("told", under("/telling/"), ratelimit_headers=True),
        config_rule("told-in-vain", under("/list/few"), ratelimit_headers=True),
    ]
    limits = [limit_rule(f"few-{name}", under(f"/{name}/few"), 1, "1h", 1) for name in ("list", "telling")]
    made = policy(config=config, limits=limits, responses={f"{kind}_own": page for kind, page in own.items()})
    made["global"]["cors_policies"] = cors
    return made


def got(status=200, **more):
    return {"status": status, **more}


def asked(method, headers=None, **more):
    return {"method": method, "headers": headers or {}, **more}


PUT = asked("PUT", {**JSON_TYPE, "x-page": "1"}, body=json.dumps({"a": 1}))
POST_JSON = asked("POST", JSON_TYPE, body="{}")

# In order: some rows are the second request of a limit, or the second for what a cache holds.
READING = [
    Case("an answer of the upstream, with the headers that are exposed", "/list/plain/simple",
         got(type="cors", allowed=LISTED, headers={"x-shown": "shown", "vary": "Origin"}, hidden=["x-hidden"])),
    Case("no answer of the upstream, from an origin that is not in the list", "/list/plain/stranger", NETWORK_ERROR, page=STRANGER),
    Case("no answer of the upstream where no CORS policy applies", "/none/plain", NETWORK_ERROR),
    Case("no answer of the upstream where a rule took the policy away", "/list/never", NETWORK_ERROR),
    Case("nothing of an answer that it asked for without CORS", "/list/plain/opaque", got(0, type="opaque", body=""), {"mode": "no-cors"}),
    Case("every header where all are exposed, from any origin", "/any/plain",
         got(allowed="*", headers={"x-hidden": "hidden"}, hidden=["vary"]), page=STRANGER),
    Case("only the safelisted headers where none is exposed", "/bare/varied",
         got(headers={"content-language": "en"}, hidden=["x-shown", "vary", "access-control-allow-origin"])),
    Case("the head of an answer to HEAD", "/list/plain/head", got(body="", headers={"x-shown": "shown"}), asked("HEAD")),
    Case("the head of a refusal of HEAD", "/list/shut/head", got(403, body=""), asked("HEAD")),
]  # fmt: skip
REFUSALS = [
    Case("the edge's 403 of a block rule", "/list/shut/read",
         got(403, kind="forbidden", allowed=LISTED, headers={"cache-control": "no-store"})),
    Case("no 403 from an origin that is not in the list", "/list/shut/stranger", NETWORK_ERROR, page=STRANGER),
    Case("no 403 where no CORS policy applies", "/none/shut", NETWORK_ERROR),
    Case("no 400 of what is refused before there is a policy", "/list/a%2f..%2fb", {**NETWORK_ERROR, "decided": {"path": 1}}),
    Case("the answer that spends a limit", "/telling/few", got(hidden=["retry-after"])),
    Case("the edge's 429 with its rate headers where they are exposed", "/telling/few", got(429, kind="rate_limited", shown=RATE_HEADERS)),
    Case("the answer that spends another limit", "/list/few", got()),
    Case("the edge's 429, but not its rate headers where they are not exposed", "/list/few",
         got(429, kind="rate_limited", hidden=RATE_HEADERS)),
    Case("the edge's 429 behind a preflight, which no limit counts", "/list/few/put", got(429, kind="rate_limited"), PUT),
    Case("the upstream's 401, its challenge not being exposed", "/list/who",
         got(401, request={"method": "GET"}, hidden=["www-authenticate"])),
    Case("the edge's 413 of a body that is announced as too large", "/list/small/announced",
         got(413, kind="payload_too_large"), asked("POST", bytes=BODY_LIMIT + 1)),
    Case("the edge's 413 while it still sends the body", "/list/small/sending",
         got(413, kind="payload_too_large"), asked("POST", bytes=4_000_000)),
    Case("the edge's 502 of an upstream that answers no HTTP", "/list/garbage", got(502, kind="bad_gateway")),
    Case("the edge's 504 of an upstream that does not answer in time", "/list/slow", got(504, kind="own_gateway_timeout")),
    Case("the edge's 502 of an upstream that refuses connections", "/list/gone",
         got(502, kind="own_bad_gateway", allowed=LISTED), at="no_upstream"),
    Case("the edge's 502 behind a preflight, for which no upstream is needed", "/list/gone/put",
         got(502, kind="own_bad_gateway", decided={"preflight": 1}), PUT, at="no_upstream"),
    Case("no 502 from an origin that is not in the list", "/list/gone/stranger", NETWORK_ERROR, at="no_upstream", page=STRANGER),
    Case("the edge's 401", "/list/token",
         got(401, kind="unauthorized", headers={"x-shown": "shown", "cache-control": "no-store"}, hidden=["vary"]), at="mock"),
]  # fmt: skip
PREFLIGHTS = [
    Case("sends PUT with JSON and a header that is listed", "/list/plain/put",
         got(request={"method": "PUT"}, decided={"preflight": 1}), PUT),
    Case("sends it again without a preflight", "/list/plain/put", got(request={"method": "PUT"}, decided={"preflight": 1}), PUT),
    Case("sends PUT where no max_age says how long that is known", "/bare/plain/put", got(), asked("PUT")),
    Case("sends PUT where max_age is zero", "/forgetful/plain/put", got(), asked("PUT")),
    Case("sends it again behind a second preflight", "/forgetful/plain/put", got(decided={"preflight": 2}), asked("PUT")),
    Case("sends no PUT from an origin that is not in the list", "/list/plain/stranger-put", UNSENT, PUT, page=STRANGER),
    Case("sends no PUT from an origin that is not the single one", "/one/plain/stranger-put", UNSENT, asked("PUT"), page=STRANGER),
    Case("sends no DELETE, which is not listed", "/list/plain/delete", UNSENT, asked("DELETE")),
    Case("sends no header that is not listed", "/list/plain/header", UNSENT, asked("GET", {"x-other": "1"})),
    Case("sends no header that is listed beside one that is not", "/list/plain/headers",
         UNSENT, asked("GET", {"x-page": "1", "x-other": "1"})),
    Case("sends POST of JSON where content-type is listed", "/list/plain/post",
         got(request={"method": "POST"}, decided={"preflight": 1}), POST_JSON),
    Case("sends no POST of JSON where content-type is not listed", "/bare/plain/post", UNSENT, POST_JSON),
    Case("sends POST of a form without a preflight", "/bare/plain/form",
         got(decided={"preflight": 0}), asked("POST", {"content-type": "application/x-www-form-urlencoded"}, body="a=1")),
    Case("sends any method and header where all are allowed", "/any/plain/all",
         got(request={"method": "DELETE"}), asked("DELETE", {"x-other": "1"}), page=STRANGER),
    Case("sends no Authorization where all headers are allowed", "/any/plain/token", UNSENT, asked("GET", {"authorization": "Bearer t"})),
    Case("sends Authorization where it stands beside all headers", "/anytoken/plain",
         got(), asked("GET", {"authorization": "Bearer t", "x-other": "1"})),
    Case("sends Authorization where it is listed", "/token/plain", got(request={"authorization": "Bearer t", "cookie": None}), asked("GET", {"authorization": "Bearer t"})),
    Case("sends no PATCH that is spelled in small letters", "/list/plain/patch", UNSENT, asked("patch")),
    Case("sends no PUT where a block rule refuses the preflight", "/list/shut/put", {**NETWORK_ERROR, "decided": {"block": 1}}, PUT),
    Case("sends no PUT where no policy applies and the upstream knows no CORS", "/none/plain/put", {**NETWORK_ERROR, "reached": 1}, PUT),
    Case("sends PUT where no policy applies and the upstream allows it", "/none/open",
         got(request={"method": "PUT"}, decided={"preflight": 0}, reached=2), asked("PUT", {"x-page": "1"})),
]  # fmt: skip
CREDENTIALS = [
    Case("takes a cookie that comes with credentials", "/list/login", got(request={"cookie": None}), INCLUDE),
    Case("sends the cookie with credentials", "/list/plain/with", got(request={"cookie": "basket=full"}), INCLUDE),
    Case("sends the cookie with credentials behind a preflight", "/list/plain/with-put",
         got(request={"cookie": "basket=full"}), {**PUT, **INCLUDE}),
    Case("sends no cookie without credentials", "/list/plain/without", got(request={"cookie": None})),
    Case("reads no answer to credentials where the policy allows none", "/bare/plain/with", NETWORK_ERROR, INCLUDE),
    Case("reads no answer to credentials where every origin is allowed", "/any/plain/with", NETWORK_ERROR, INCLUDE),
    Case("sends Authorization with credentials where both are allowed", "/token/plain/with",
         got(request={"authorization": "Bearer t", "cookie": "basket=full"}), {**asked("GET", {"authorization": "Bearer t"}), **INCLUDE}),
    Case("sends no PUT with credentials where everything is allowed", "/any/plain/with-put", UNSENT, {**asked("PUT"), **INCLUDE}),
    Case("reads a refusal that it got with credentials", "/list/shut/with", got(403, kind="forbidden"), INCLUDE),
]  # fmt: skip
UPSTREAMS = [
    Case("reads by the edge's policy what the upstream contradicts", "/list/contradict",
         got(allowed=LISTED, headers={"x-shown": "shown"}, hidden=["x-hidden"]), INCLUDE),
    Case("reads nothing by the upstream's policy", "/list/contradict", NETWORK_ERROR, page=STRANGER),
    Case("reads by the edge's single origin what the upstream contradicts", "/one/contradict", got(allowed=LISTED)),
    Case("reads by the edge's `*` what the upstream contradicts", "/any/contradict", got(allowed="*")),
    Case("reads by the upstream's policy where the edge has none", "/none/open/read", got(), page=STRANGER),
]  # fmt: skip
CACHES = [
    Case("gets what caches may keep", "/list/varied", got(body="1", allowed=LISTED, headers={"vary": "Accept-Encoding, Origin"})),
    Case("gets it from its cache", "/list/varied", got(body="1", reached=2)),
    Case("of another origin gets an answer of its own", "/list/varied", got(body="2", allowed=MORE), page=MORE),
    Case("has an answer validated", "/list/validated", got(body="1", allowed=LISTED)),
    Case("of another origin has it validated for itself", "/list/validated", got(allowed=MORE), page=MORE),
    Case("gets a 403", "/list/shut/cache", got(403, allowed=LISTED, decided={"block": 2})),
    Case("of another origin gets a 403 of its own", "/list/shut/cache", got(403, allowed=MORE), page=MORE),
    Case("gets without CORS what a list's policy applies to", "/list/cached/first", got(0), {"mode": "no-cors"}),
    Case("gets it once more to read it", "/list/cached/first", got(body="2", allowed=LISTED)),
    Case("gets without CORS what is for one origin", "/one/cached", got(0), {"mode": "no-cors"}),
    Case("reads it from the cache, for it does not vary", "/one/cached", got(body="1", allowed=LISTED, hidden=["vary"], reached=1)),
    Case("of another origin does not read from the cache what is for one origin", "/one/cached", NETWORK_ERROR, page=MORE),
    Case("gets what is for everybody", "/any/cached", got(body="1", reached=1)),
    Case("of another origin reads it from the cache", "/any/cached", got(body="1", allowed="*", hidden=["vary"]), page=MORE),
]  # fmt: skip
REDIRECTS = [
    Case("follows a redirect of its own origin to the edge", "{page}/hop?to={edge}/list/plain/hopped",
         got(redirected=True, allowed=LISTED)),
    Case("follows a redirect within the edge", "/list/redirect?to=/list/plain/redirected", got(redirected=True, allowed=LISTED)),
    Case("follows a redirect of PUT, behind a preflight for each", "/list/redirect/put?to=/list/plain/redirected-put",
         got(redirected=True, request={"method": "PUT"}, decided={"preflight": 1, "allow": 1}), PUT),
    Case("follows a redirect of the edge to its own origin, as nobody", "/list/redirect?to={page}/back", got(redirected=True, body="null")),
    Case("follows no redirect that it may not read", "/none/redirect?to=/list/plain/unread", NETWORK_ERROR),
    Case("of an allowed origin is nobody behind a redirect by a third one", "{stranger}/stray?to={edge}/list/plain/strayed", NETWORK_ERROR),
    Case("reads behind a redirect by a third origin what is for everybody", "{stranger}/stray?to={edge}/any/plain/strayed",
         got(redirected=True, request={"origin": "null"})),
]  # fmt: skip
STREAMS = [
    Case("gets events with its cookie", "/list/events", {"event": "basket=full"}, {"withCredentials": True}, way="events"),
    Case("gets events without credentials where all origins are allowed", "/any/events", {"event": "no cookie"}, way="events"),
    Case("gets no events with credentials where all origins are allowed", "/any/events/with",
         {"error": "closed"}, {"withCredentials": True}, way="events"),
    Case("gets no events from an origin that is not in the list", "/list/events/stranger",
         {"error": "closed"}, page=STRANGER, way="events"),
    Case("speaks WebSocket", "/list/echo", {"echo": "hello"}, way="socket"),
    Case("speaks WebSocket from an origin that is not in the list, for CORS is not asked", "/list/echo/stranger",
         {"echo": "hello"}, page=STRANGER, way="socket"),
]  # fmt: skip
# Its edge lets one request of a client pass.
FLOOD = [
    Case("the answer that spends the backstop", "/telling/plain/flood", got(), at="flooded"),
    Case("the edge's 429 of the backstop", "/telling/plain/flood",
         got(429, kind="rate_limited", headers={"cache-control": "no-store"}, shown=["retry-after"], hidden=["ratelimit"]), at="flooded"),
    Case("no 429 of the backstop from an origin that is not in the list", "/telling/plain/flood",
         NETWORK_ERROR, page=STRANGER, at="flooded"),
    Case("no 429 of the backstop to what needs a preflight, for that is counted too", "/telling/plain/put",
         {**NETWORK_ERROR, "decided": {"backstop": 1}}, PUT, at="flooded"),
]  # fmt: skip
TABLES = {"reads": READING + REFUSALS + FLOOD, "": PREFLIGHTS + CREDENTIALS + UPSTREAMS + CACHES + REDIRECTS + STREAMS}
CASES = {f"{verb} {case.name}".lstrip(): case for verb, cases in TABLES.items() for case in cases}
