"""Clients that speak TLS to an edge, and what it told the upstream about them."""

import json
import socket
import subprocess

import fingerprints
from policies import header_rule, policy

FACTS = policy(headers=[header_rule("facts", "true", ("X-Ja3", "{{ja3}}"), ("X-Ja4", "{{ja4}}"))])
# Settings with and without the hop in front of the handshake; without it there are no fingerprints here either.
MODES = {"direct": {"EDGE_TLS_FINGERPRINTS": "false"}, "hop": {}}
CURL = ["curl", "--silent", "--show-error", "--insecure", "--max-time", "15"]


def told(body):
    """(JA3 by a rule, JA4 by a rule, X-Edge-TLS-JA4) of a request as the upstream saw it; None where there is none."""
    headers = [(name.lower(), value) for name, value in json.loads(body)["headers"]]
    found = [[value for name, value in headers if name == wanted] for wanted in ("x-ja3", "x-ja4", "x-edge-tls-ja4")]
    assert all(len(values) <= 1 for values in found), found
    return tuple(values[0] if values and values[0] else None for values in found)


def of_hello(sent):
    hello = fingerprints.Hello(bytes(sent))
    return fingerprints.ja3(hello), fingerprints.ja4(hello), fingerprints.ja4(hello)


def curl(port, *options):
    done = subprocess.run([*CURL, *options, f"https://127.0.0.1:{port}/curl"], capture_output=True, check=True)
    return done.stdout


def s_client(port, *options):
    """The body of an HTTP/1 answer through `openssl s_client`."""
    request = b"GET /openssl HTTP/1.1\r\nHost: edge.test\r\nConnection: close\r\n\r\n"
    command = ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{port}", *options]
    done = subprocess.run(command, input=request, capture_output=True, check=False, timeout=30)
    assert b"\r\n\r\n" in done.stdout, done.stderr.decode()
    return done.stdout.partition(b"\r\n\r\n")[2]


def get_with(context, port, session=None):
    """One HTTP/1 request on a connection of its own: (body, session, whether an older session was resumed)."""
    sock = socket.create_connection(("127.0.0.1", port), 15)
    with context.wrap_socket(sock, server_hostname="edge.test", session=session) as secure:
        secure.sendall(b"GET /python HTTP/1.1\r\nHost: edge.test\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: secure.recv(65536), b""))
        told_by_ssl = secure.session, secure.session_reused
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    return answer.partition(b"\r\n\r\n")[2], *told_by_ssl


def has_hop(edge):
    return (edge.run_dir / "tls.sock").exists()
