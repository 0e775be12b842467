"""Valid requests, mutated at random: on every connection the edge, the upstream and RFC 9112 agree about what was asked.

FUZZ_SEEDS=a-b in the environment runs other seeds than the fixed ones."""

import os
import random
import re

import pytest

from clients import connect, port_of
from edge import poll
from hostile import idle
from reference_http1 import path_of, read
from shapes import managed

PARTS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"\x01", b"\xff", b"%00", b"/../", b"?a=%", b"#", b"\r\n ", b"\r\n\r\n", b"0\r\n\r\n",
    b"Content-Length: 3\r\n", b"Content-Length: 0\r\n", b"Content-Length: 30\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n",
    b"Transfer_Encoding: chunked\r\n", b"Transfer-Encoding : chunked\r\n", b"Host: b\r\n", b"Host: edge.test\r\n", b"X-Edge-Client-IP: 6.6.6.6\r\n",
    b"X_Forwarded_For: 6.6.6.6\r\n", b"X-Request-Id: evil\r\n", b"Connection: close\r\n", b"Connection: x-edge-client-ip, host\r\n", b"HTTP/1.0", b"HTTP/2.0",
    b"chunked", b"CONNECT", b"http://edge.test", b"3;a=b\r\nabc\r\n", b"GET /fuzz/inserted HTTP/1.1\r\nHost: edge.test\r\n\r\n",
]  # fmt: skip
HIDDEN = b"GET /fuzz/hidden HTTP/1.1\r\nHost: edge.test\r\nX: "
END = b"GET /fuzz/end HTTP/1.1\r\nHost: edge.test\r\nConnection: close\r\n\r\n"
ANSWER = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) [^\r\n]*\r\n((?:[!-9;-~]+: ?[^\r\n]*\r\n)*)\r\n")


def valid(rng, seed, n):
    head = b"/fuzz/%d/%d HTTP/1.1\r\nHost: edge.test\r\nUser-Agent: fuzz\r\n" % (seed, n)
    kind = rng.randrange(3)
    if kind == 0:
        return b"GET " + head + b"\r\n"
    if kind == 1:
        return b"POST " + head + b"Content-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN
    return b"POST " + head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX-Edge-Auth-Sub: evil\r\n\r\n" % (len(HIDDEN), HIDDEN)


def mutate(rng, data):
    at = rng.randrange(len(data))
    end = at + rng.randrange(1, 12)
    kind = rng.randrange(5)
    if kind == 0:
        return data[:at] + bytes([rng.choice([data[at] ^ (1 << rng.randrange(8)), rng.randrange(256)])]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + data[end:]
    if kind == 2:
        return data[:end] + data[at:]
    if kind == 3:
        at = data.find(b"\n", at) + 1  # where a line begins
    return data[:at] + rng.choice(PARTS) + data[at:]


def sequence(seed):
    rng = random.Random(seed)
    data = b"".join(valid(rng, seed, n) for n in range(rng.randrange(1, 4)))
    for _ in range(rng.randrange(1, 5)):
        data = mutate(rng, data)
    return data + END


def answers(data):
    """The statuses of the whole answers in data, without interim ones, and whether nothing is left behind them."""
    found, at = [], 0
    while answer := ANSWER.match(data, at):
        length = re.search(rb"(?im)^content-length: ?([0-9]+)\r$", answer[2])
        size = int(length[1]) if length else 0
        assert length or answer[1] in (b"100", b"204", b"304"), answer[0]
        if len(data) < answer.end() + size:
            break
        at = answer.end() + size
        if answer[1] != b"100":
            found.append(int(answer[1]))
    return found, at == len(data)


def exchange(edge, protocol, data, expected):
    """What is answered until the edge closes, or, where it waits for the rest of a request, until all whole ones are answered."""
    said = b""
    with connect(port_of(edge, protocol), protocol == "tls-h1", "http/1.1") as s:
        s.settimeout(0.2)

        def over():
            nonlocal said
            try:
                piece = s.recv(65536)
            except TimeoutError:
                statuses, whole = answers(said)
                return whole and len(statuses) >= expected
            except ConnectionError:
                return True
            said += piece
            return not piece

        try:
            s.sendall(data)
        except ConnectionError:
            pass
        poll(over, "answered or closed")
    return said


def check_sequence(edge, upstream, protocol, seed):
    data, before = sequence(seed), len(upstream.requests)
    meant, doubtful = read(data)
    said = exchange(edge, protocol, data, len(meant))
    poll(lambda: idle(edge), "nothing of the connection is left")
    statuses, whole = answers(said)
    reached = upstream.requests[before:]
    assert whole, said[-300:]
    assert statuses.count(200) == len(reached), (statuses, [r["target"] for r in reached])
    rest = list(meant)
    for request in reached:
        found = managed(request)
        assert len(found) == len(dict(found)) == (6 if protocol == "tls-h1" else 5), "over TLS the JA4 of the handshake, too"
        assert dict(found)["x-edge-client-ip"] == dict(found)["x-forwarded-for"] == "127.0.0.1", found
        assert request["trailers"] == [] and re.fullmatch("[0-9a-f]{32}", dict(found)["x-request-id"]), found
        same = [i for i, r in enumerate(rest) if (r.method, r.path, r.body_len) == (request["method"], path_of(request["target"]), request["body_len"])]
        assert same or doubtful, f"nobody asked for {request['method']} {request['target']} with {request['body_len']} bytes: {meant}"
        rest = rest[same[0] + 1 :] if same else []


@pytest.mark.parametrize("protocol, seeds", [("h1", range(400)), ("tls-h1", range(400, 500))])
def test_the_edge_the_upstream_and_the_standard_agree_about_mutated_requests(edge, upstream, protocol, seeds):
    if "FUZZ_SEEDS" in os.environ:
        first, _, last = os.environ["FUZZ_SEEDS"].partition("-")
        seeds = range(int(first), int(last))
    for seed in seeds:
        try:
            check_sequence(edge, upstream, protocol, seed)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {sequence(seed)!r}") from e


def test_the_sequences_are_worth_their_time():
    """Most are refused somewhere, many pass in part, and some are whole: neither a fuzzer of noise nor one of valid requests."""
    counts = [len(read(sequence(seed))[0]) for seed in range(400)]
    assert counts.count(0) > 100 and sum(n > 1 for n in counts) > 50
