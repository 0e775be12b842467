"""Every spelling of a path, over HTTP/1 and HTTP/2: what rules see, and what is refused before they are asked."""

import json
from pathlib import Path

import pytest

from clients import fetch
from edge import Edge
from policies import config_rule, policy, under

ROWS = json.loads(Path("tests/cases/http/path_spellings.json").read_text())
POLICY = policy(config=[config_rule("no-admin", f'http.request.uri.path eq "/admin" or {under("/admin/")}', block="block")])


def named(row):
    return f"{row['kind']}-{row['spelling']}".replace(" ", "_")


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_path_is_judged_alike_however_it_is_spelled_and_sent(edge, row, protocol):
    response = fetch(edge, "GET", row["raw"], protocol=protocol)
    if "verdict" in row:
        assert response.status == 400
    elif row["normal"].startswith("/admin/"):
        assert response.status == 403
    else:
        assert response.status == 200
        assert response.json()["target"] == row["raw"], "a path that passes is forwarded as sent"
