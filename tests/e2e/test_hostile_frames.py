"""The agent's SPOP socket under frames that HAProxy would never send: it may drop the peer, it must go on serving others.

Runs on the build with AddressSanitizer and UBSan where there is one (`make asan`), so that a silent overrun shows, too.
"""

import os
import random
import socket
import time

import pytest

import spop
from clients import fetch
from edge import BINARY, ROOT, Edge
from policies import config_rule, policy, under

N_FRAMES = 10_000
PER_CONNECTION = 2  # few, since most end the connection
ASAN = ROOT / "build/asan/edge-spoa"
POLICY = policy(config=[config_rule("shut", under("/shut"), block="block")])


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url, binary=str(ASAN) if ASAN.exists() else BINARY) as e:
        yield e


@pytest.fixture
def agent_socket(edge):
    return edge.run_dir / "agent-0.sock"


@pytest.fixture
def seed():
    value = int(os.environ.get("TEST_SEED", time.time_ns() & 0xFFFFFFFF))
    print(f"TEST_SEED={value} repeats this run")
    return value


def random_frame(rng):
    kind = rng.choice([1, 2, 3, 3, 3, 101, 103, rng.randrange(256)])
    payload = rng.randbytes(rng.choice([0, 1, 7, 60, 600]))
    flags = rng.choice([spop.FIN, spop.FIN, b"\0\0\0\0", b"\0\0\0\3", rng.randbytes(4)])
    return spop.frame(kind, payload, rng.randrange(1 << rng.choice([3, 16, 63])), rng.randrange(300), flags)


def proper_frame(rng):
    args = spop.arguments(path="/" + "x" * rng.choice([0, 1, 200, 3000]))
    choice = rng.randrange(6)
    if choice == 0:
        rng.shuffle(args)
    elif choice == 1:
        args.append(rng.choice(args))
    elif choice == 2:
        args.pop(rng.randrange(len(args)))
    elif choice == 3:
        args[rng.randrange(len(args))] = ("", b"\0")
    elif choice == 4:
        i = rng.randrange(len(args))
        args[i] = (args[i][0], rng.choice([b"\0", spop.integer(rng.randrange(1 << 40)), spop.text("\x00\n"), b"\x07" + b"\1" * 16]))
    return spop.notify(rng.randrange(1, 1000), rng.randrange(1, 1000), spop.message(args))


def mutated_frame(rng):
    """A proper frame with damage, most of the time with its length put right again, so that the damage is reached."""
    frame = bytearray(rng.choice([proper_frame, proper_frame, lambda _: spop.hello()])(rng))
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(4, len(frame))
        damage = rng.randrange(4)
        if damage == 0:
            frame[at] ^= 1 << rng.randrange(8)
        elif damage == 1:
            frame[at] = rng.choice([0, 0x7F, 0xEF, 0xF0, 0xFF])
        elif damage == 2:
            del frame[at : at + rng.randrange(1, 50)]
        else:
            frame[at:at] = rng.randbytes(rng.randrange(1, 20))
        if len(frame) <= 5:
            break
    if rng.randrange(10):
        frame[:4] = (len(frame) - 4).to_bytes(4, "big")
    return bytes(frame)


def send_hostile(path, rng, frames):
    """One connection's worth, to the end of the connection: an agent that kept a finished peer would time out here."""
    with spop.Agent(path, greet=rng.randrange(8) != 0) as agent:
        try:
            for frame in frames:
                for piece in split(frame, rng):
                    agent.sock.sendall(piece)
            agent.sock.shutdown(socket.SHUT_WR)
            while agent.sock.recv(65536):
                pass
        except (BrokenPipeError, ConnectionResetError):
            pass


def split(frame, rng):
    if rng.randrange(4):
        return [frame]
    at = rng.randrange(len(frame))
    return [frame[:at], frame[at:]]


def test_ten_thousand_random_and_damaged_frames_leave_the_agent_serving(edge, agent_socket, seed):
    rng = random.Random(seed)
    agent = edge.agent_pids()[0]
    makers = [random_frame, proper_frame, mutated_frame, mutated_frame, mutated_frame]
    for sent in range(0, N_FRAMES, PER_CONNECTION):
        send_hostile(agent_socket, rng, [rng.choice(makers)(rng) for _ in range(PER_CONNECTION)])
        if sent % 2000 == 0:
            assert fetch(edge, "GET", "/between").status == 200
    assert fetch(edge, "GET", "/after").status == 200
    assert fetch(edge, "GET", "/shut").status == 403
    with spop.Agent(agent_socket) as peer:
        assert peer.ask().endswith(spop.pair("ok", spop.integer(1)))
    assert edge.agent_pids()[0] == agent, "it was the same process all the time"
    assert edge.metric("edge_spop_protocol_errors_total") > 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\0\x01\x01",
        b"\xff\xff\xff\xff",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        spop.notify(1, 1, spop.message(spop.arguments())),
        spop.hello(max_frame=255),
        spop.hello() + spop.hello(),
        spop.hello() + b"\0\0\xff\xff\x03",
    ],
    ids=["HTTP", "a frame of no bytes", "a frame of one byte", "4 GiB", "TLS", "no HELLO", "tiny frames", "two HELLOs", "cut"],
)
def test_a_peer_that_does_not_speak_spop_is_dropped(edge, agent_socket, data):
    with spop.Agent(agent_socket, greet=False) as agent:
        agent.sock.sendall(data)
        agent.sock.shutdown(socket.SHUT_WR)
        while True:
            try:
                if agent.receive() is None:
                    break
            except ConnectionResetError:
                break
    assert fetch(edge, "GET", "/after").status == 200


def test_a_frame_that_arrives_byte_by_byte_is_answered(agent_socket):
    with spop.Agent(agent_socket, greet=False) as agent:
        for byte in spop.hello() + spop.notify(7, 1, spop.message(spop.arguments())):
            agent.sock.sendall(bytes([byte]))
        assert agent.receive()[0] == spop.AGENT_HELLO
        assert agent.receive()[0] == spop.ACK


def test_every_notify_of_a_burst_is_answered_once(agent_socket):
    n = 500
    with spop.Agent(agent_socket) as agent:
        agent.sock.sendall(b"".join(spop.notify(i, 1, spop.message(spop.arguments())) for i in range(1, n + 1)))
        streams = sorted(spop_stream(agent.receive()[1]) for _ in range(n))
        assert streams == list(range(1, n + 1))


def spop_stream(rest):
    """The stream id behind the flags, undone from its varint."""
    at, value = 5, rest[4]
    if value >= 240:
        shift = 4
        while True:
            value += rest[at] << shift
            shift += 7
            at += 1
            if rest[at - 1] < 128:
                break
    return value


def test_another_contract_version_is_refused_and_counted(edge, agent_socket):
    before = edge.metric("edge_contract_mismatch_total")
    with spop.Agent(agent_socket) as agent:
        agent.sock.sendall(spop.notify(1, 1, spop.message(spop.arguments(contract=2))))
        kind, rest = agent.receive()
    assert kind == spop.ACK
    assert spop.pair("status", spop.integer(503)) in rest
    assert edge.metric("edge_contract_mismatch_total") == before + 1
