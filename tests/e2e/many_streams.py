"""Thousands of streams held through one edge: event streams over HTTP/1 and HTTP/2, and WebSockets. Both ends check every byte: an
event carries its stream and number, an echo is what was sent."""

import asyncio
import random
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import h2.events

import websocket
from clients import Frames, h2_state

PER_CONNECTION = 100  # streams that HAProxy takes on one HTTP/2 connection
AT_ONCE = 64  # streams that are being opened
SOURCES = [f"127.0.0.{i}" for i in range(2, 18)]
UPSTREAM = Path(__file__).with_name("many_streams_upstream.py")


def raise_fds():
    """The soft limit of open files becomes the hard one, which children inherit; returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@dataclass
class Shape:
    """How many streams of each kind, and how often something passes on each."""

    events_h1: int
    events_h2: int
    websockets: int
    period_s: float

    @property
    def total(self):
        return self.events_h1 + self.events_h2 + self.websockets

    def files_of_edge(self):
        """Open files of HAProxy: a client's and an upstream's connection for each stream, the client's shared over HTTP/2."""
        return 2 * self.total - self.events_h2 + self.events_h2 // PER_CONNECTION + 600


class Upstream:
    """many_streams_upstream.py in a process of its own."""

    def __init__(self, shape):
        command = [sys.executable, str(UPSTREAM), str(shape.period_s)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()  # it ends with its input
        self.process.wait(20)


class Tally:
    """What became of the streams. `wrong`: sentences, each a broken promise."""

    def __init__(self):
        self.count, self.wrong, self.is_ending = Counter(), [], False
        self.events, self.sockets = [], []  # what watches each stream

    def fewest(self):
        """(events on the event stream, echoes on the WebSocket) where the fewest have passed."""
        return min((e.next for e in self.events), default=0), min((s.echoed for s in self.sockets), default=0)

    def fault(self, text):
        self.count["wrong"] += 1
        if len(self.wrong) < 20:
            self.wrong.append(text)


class EventCheck:
    """Counts the events of one stream, which carry its name and a number that rises by one."""

    def __init__(self, tally, name):
        self.tally, self.name, self.next, self.buffer = tally, name, 0, b""
        tally.events.append(self)

    def take(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\n\n")) >= 0:
            # In front of it may stand the framing of a chunk.
            text, self.buffer = self.buffer[:end], self.buffer[end + 2 :]
            want = f"data: {self.name} {self.next}".encode()
            if not text.endswith(want):
                self.tally.fault(f"{self.name}: {text!r} instead of {want!r}")
            self.next += 1
            self.tally.count["events"] += 1


class Http1Stream(asyncio.Protocol):
    """A stream on an HTTP/1 connection of its own: the head, then what `take` makes of the rest."""

    def __init__(self, tally, name, status):
        self.tally, self.name, self.status = tally, name, status
        self.opened = asyncio.get_running_loop().create_future()
        self.buffer, self.is_open = b"", False

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.request())

    def data_received(self, data):
        if self.is_open:
            return self.take(data)
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if found:
            status = int(head.split(b" ", 2)[1])
            self.is_open = status == self.status
            if not self.is_open:
                self.tally.fault(f"{self.name}: answered {status}")
            self.tally.count["open"] += self.is_open
            self.opened.set_result(self.is_open)
            if rest and self.is_open:
                self.take(rest)
        return None

    def connection_lost(self, _):
        self.tally.count["open"] -= self.is_open
        self.is_open = False
        if not self.tally.is_ending:
            self.tally.fault(f"{self.name}: lost")
        if not self.opened.done():
            self.opened.set_result(False)


class Events1(Http1Stream):
    def __init__(self, tally, number):
        super().__init__(tally, f"h1-{number}", 200)
        self.take = EventCheck(tally, self.name).take

    def request(self):
        return f"GET /events/{self.name} HTTP/1.1\r\nHost: edge.test\r\nAccept: text/event-stream\r\n\r\n".encode()


class WebSocket1(Http1Stream):
    """Sends a frame every period, each after the echo of the one before."""

    def __init__(self, tally, number, period_s):
        super().__init__(tally, f"ws-{number}", 101)
        self.period_s, self.sent, self.echoed, self.waiting, self.received = period_s, 0, 0, None, b""
        tally.sockets.append(self)

    def request(self):
        headers = [("Host", "edge.test"), *websocket.request_headers(websocket.new_key())]
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        asyncio.get_running_loop().call_later(random.uniform(0, self.period_s), self.say)
        return f"GET /echo/{self.name} HTTP/1.1\r\n{lines}\r\n".encode()

    def say(self):
        if self.is_open:
            if self.waiting is not None:
                self.tally.fault(f"{self.name}: no echo within {self.period_s} s")
            payload = f"{self.name} {self.sent} ".encode() + random.randbytes(random.randrange(100))
            self.sent += 1
            self.waiting = websocket.encode(websocket.Frame(websocket.BINARY, payload))
            self.transport.write(websocket.encode(websocket.Frame(websocket.BINARY, payload, masked=True)))
        if not self.transport.is_closing():
            asyncio.get_running_loop().call_later(self.period_s, self.say)

    def take(self, data):
        self.received += data
        if self.waiting is None or not self.waiting.startswith(self.received):
            self.tally.fault(f"{self.name}: another echo than what was sent")
        elif self.received == self.waiting:
            self.waiting, self.received = None, b""
            self.echoed += 1
            self.tally.count["echoes"] += 1


class Events2(asyncio.Protocol):
    """Event streams on one HTTP/2 connection."""

    def __init__(self, tally, numbers):
        self.tally, self.names = tally, [f"h2-{n}" for n in numbers]
        self.state, self.frames, self.checks, self.n_open = h2_state(), Frames(), {}, 0
        self.opened = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        self.state.initiate_connection()
        for name in self.names:
            stream = self.state.get_next_available_stream_id()
            fields = [(":method", "GET"), (":scheme", "http"), (":path", f"/events/{name}"), (":authority", "edge.test")]
            self.state.send_headers(stream, [*fields, ("accept", "text/event-stream")], end_stream=True)
            self.checks[stream] = EventCheck(self.tally, name)
        transport.write(self.state.data_to_send())

    def data_received(self, data):
        for event in self.state.receive_data(self.frames.take(data)):
            if isinstance(event, h2.events.ResponseReceived):
                self.answered(event)
            elif isinstance(event, h2.events.DataReceived):
                self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.checks[event.stream_id].take(event.data)
            elif isinstance(event, (h2.events.StreamReset, h2.events.StreamEnded)) and not self.tally.is_ending:
                self.tally.fault(f"{self.checks[event.stream_id].name}: lost")
        self.transport.write(self.state.data_to_send())

    def answered(self, event):
        status = dict(event.headers)[":status"]
        if status != "200":
            self.tally.fault(f"{self.checks[event.stream_id].name}: answered {status}")
        else:
            self.n_open += 1
            self.tally.count["open"] += 1
        if self.n_open == len(self.names):
            self.opened.set_result(True)

    def connection_lost(self, _):
        self.tally.count["open"] -= self.n_open
        if not self.tally.is_ending:
            self.tally.fault(f"{self.names[0]} and {len(self.names) - 1} more: lost")
        if not self.opened.done():
            self.opened.set_result(False)


class Clients:
    """Opens and holds the streams on a thread of its own. `with` closes what is still open."""

    def __init__(self, port, shape):
        self.port, self.shape, self.tally, self.n_started = port, shape, Tally(), 0
        self.transports, self.loop = [], asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.tally.is_ending = True
        self.loop.call_soon_threadsafe(lambda: [transport.abort() for transport in self.transports])
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(60)
        self.loop.close()

    async def start(self, room, make):
        async with room:
            self.n_started += 1
            source = (SOURCES[self.n_started % len(SOURCES)], 0)
            transport, protocol = await self.loop.create_connection(make, "127.0.0.1", self.port, local_addr=source)
            self.transports.append(transport)
            await protocol.opened

    async def start_all(self, makes):
        room = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self.start(room, make) for make in makes))

    def open(self, kind, deadline_s=600):
        """All streams of a kind: events_h1, events_h2 or websockets."""
        n, tally = getattr(self.shape, kind), self.tally
        makes = {
            "events_h1": [lambda i=i: Events1(tally, i) for i in range(n)],
            "events_h2": [lambda i=i: Events2(tally, range(i, min(i + PER_CONNECTION, n))) for i in range(0, n, PER_CONNECTION)],
            "websockets": [lambda i=i: WebSocket1(tally, i, self.shape.period_s) for i in range(n)],
        }[kind]
        asyncio.run_coroutine_threadsafe(self.start_all(makes), self.loop).result(deadline_s)

    def wait_closed(self, deadline_s):
        """Seconds until no stream was open any more, once the edge has been told to end."""
        begin = time.monotonic()
        while self.tally.count["open"] and time.monotonic() - begin < deadline_s:
            time.sleep(0.05)
        return time.monotonic() - begin
