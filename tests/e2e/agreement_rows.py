"""Requests for the question whether `edge-spoa simulate` and live traffic agree: those written by hand, and others drawn from a seed.

Both stand in tests/cases/agreement/requests.json; run as a program, this file draws its part anew.
"""

import json
import random
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "cases/agreement"
SEED, N_DRAWN = 20, 110

CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
METHODS = ["GET"] * 6 + ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
HOSTS = ["edge.test"] * 4 + ["EDGE.test.", "edge.test:8080", "static.example", "[2001:db8::1]", "192.0.2.80:80", "tenant-7.example"]
PREFIXES = ["/", "/api/", "/api/internal/", "/public/", "/admin/", "/ops/", "/values/", "/only/", "/deny/", "/open/", "/cap/", "/upload/", "/many/"]
ENDINGS = ["", "x", "a%20b", "a%2fb", "%61dmin", "./../api/y", "a//b", "a|b", "%e2%82%ac", "..%2f", "%2e%2e/z", "a;b=c", "~x!$&'()*+,", "..%00", "caf%C3%A9"]
QUERIES = ["", "", "?", "?debug=1", "?debug=0&debug=1", "?q=a+b%26c", "?q=%zz&tenant=t1", "?tenant=a%0d%0aX-Evil:%201", "?%71=1&;x", "?q=%e2%82%ac", "?tenant=&q"]
HEADERS = [
    ("Accept", ["*/*", "text/html,application/json;q=0.9", ""]),
    ("Accept-Language", ["de", "fr-CH, fr;q=0.9, en;q=0.8", "zh-TW", "en-GB;q=0.1, de;q=0", "x" * 300, "*", "pt-BR,pt;q=0.9", ";;;"]),
    ("Authorization", ["Bearer a.b.c", "Basic eDp5"]),
    ("Cookie", ["session=1", "a=1; session=; b=2", "locale=fr; session=s", ["a=1", "session=2"], "broken"]),
    ("Content-Type", ["application/json"]),
    ("HTTP2-Settings", ["AAMAAABk"]),
    ("Origin", ["https://app.example", "https://evil.example", "null", "HTTPS://APP.EXAMPLE"]),
    ("Access-Control-Request-Method", ["PUT", "GET", "TRACE"]),
    ("Access-Control-Request-Headers", ["content-type", "x-token,x-other"]),
    ("Referer", ["https://a.example/", ""]),
    ("User-Agent", [CHROME, "curl/8.5.0", "python-requests/2.31", "", "sqlmap/1.7"]),
    ("X-A", ["1", ["1", "2"], "", "a,b"]),
    ("x_a", ["twin"]),
    ("X-B", ["evil", ["x", "y"]]),
    ("x_tenant", ["evil"]),
    ("X-Debug", ["1"]),
    ("X_Debug", ["2"]),
    ("X-Edge-Auth-Sub", ["root"]),
    ("x_edge_geo_country", ["ZZ"]),
    ("X.Edge.Client.IP", ["1.2.3.4"]),
    ("X-Flag", ["on", "off", "1"]),
    ("X-Forwarded-For", ["198.51.100.7, 10.0.0.1"]),
    ("Forwarded", ["for=1.2.3.4"]),
    ("Content_Length", ["5"]),
    ("traceparent", ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]),
    ("X-Utf8", ["grüße €"]),
]
VIEWER = [
    ("country", ["DE", "us", "FR"]),
    ("continent", ["EU", "na"]),
    ("asnum", [64500, 3320, 0]),
    ("ja3", ["0123456789abcdef0123456789abcdef", "no-ja3"]),
    ("ja4", ["t13d1516h2_8daaf6152771_02713d6af862", "t10d1516h1_8daaf6152771_02713d6af862", "wrong"]),
    ("http_version", ["1.0", "1.1", "2.0", "HTTP/3"]),
    ("ssl", [True, False]),
]
ADDRESSES = ["203.0.113.9", "10.1.2.3", "2001:db8::9", "::ffff:10.1.2.3", "198.51.100.200"]


def draw_request(rng, number):
    path = rng.choice(PREFIXES) + rng.choice(ENDINGS if rng.random() < 0.5 else ["x"]) + rng.choice(QUERIES)
    request = {"method": rng.choice(METHODS), "host": rng.choice(HOSTS), "path": path, "ip": rng.choice(ADDRESSES)}
    headers = {name: rng.choice(values) for name, values in HEADERS if rng.random() < 0.25}
    request |= {name: rng.choice(values) for name, values in VIEWER if rng.random() < 0.4}
    return {"name": f"drawn {number}", "request": request | ({"headers": headers} if headers else {})}


def draw():
    """The requests of the seed, always the same."""
    rng = random.Random(SEED)
    return [draw_request(rng, number) for number in range(N_DRAWN)]


def read(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def render(requests):
    """One request a line."""
    parts = [f'"{part}": [\n' + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]" for part, rows in requests.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    (FOLDER / "requests.json").write_text(render({**read("requests.json"), "drawn": draw()}), encoding="utf-8")
