"""Kept connections of a load, on asyncio: ask() gives the future of a whole answer, free() says whether another request may
be sent, and a connection whose end the peer has announced takes no more."""

import asyncio

import h2.events

from clients import Closed, Frames, Response, StreamReset, Unprocessed, h2_state, port_of, render1, tls_context


def settle(future, result=None, error=None):
    """A future whose asker has given up is left alone."""
    if future.done():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)


class Lane1(asyncio.Protocol):
    """HTTP/1: one request at a time. Answers have a Content-Length, as all have that the edge and the tests' upstream make."""

    def __init__(self):
        self.transport, self.waiting, self.buffer, self.ending = None, None, b"", False

    def connection_made(self, transport):
        self.transport = transport

    def free(self):
        return self.waiting is None and not self.ending

    def ask(self, target):
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(render1("GET", target))
        return self.waiting

    def close(self):
        self.ending = True
        self.transport.close()

    def whole(self):
        """The answer, once all of it is there."""
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = [(n.lower(), v.strip()) for n, _, v in (line.partition(":") for line in lines)]
        response = Response(int(first.split(" ")[1]), headers)
        size = int(response.get("content-length"))
        if len(body) < size:
            return None
        response.body, self.buffer = body[:size], body[size:]
        return response

    def data_received(self, data):
        self.buffer += data
        if self.waiting is None:  # nothing was asked
            self.close()
            return
        try:
            response = self.whole()
        except (AssertionError, TypeError, ValueError) as e:
            settle(self.waiting, error=Closed(f"no HTTP that a load expects: {e!r}"))
            self.close()
            return
        if response is None:
            return
        waiting, self.waiting = self.waiting, None
        if response.get("connection") == "close":
            self.close()
        settle(waiting, response)

    def connection_lost(self, why):
        self.ending = True
        if self.waiting is not None:
            settle(self.waiting, error=Closed(f"after {len(self.buffer)} bytes of the answer: {why!r}"))


class Lane2(asyncio.Protocol):
    """HTTP/2: as many requests at a time as HAProxy takes on a connection."""

    STREAMS = 100

    def __init__(self, scheme):
        self.scheme, self.transport, self.ending = scheme, None, False
        self.h2, self.frames = h2_state(), Frames()
        self.answers = {}  # stream: (future, response so far)

    def connection_made(self, transport):
        self.transport = transport
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.transport.write(self.h2.data_to_send())

    def free(self):
        return len(self.answers) < self.STREAMS and not self.ending

    def ask(self, target):
        stream, future = self.h2.get_next_available_stream_id(), asyncio.get_running_loop().create_future()
        fields = [(":method", "GET"), (":scheme", self.scheme), (":path", target), (":authority", "edge.test")]
        self.h2.send_headers(stream, fields, end_stream=True)
        self.answers[stream] = (future, Response(0))
        self.flush()
        return future

    def close(self):
        self.ending = True
        self.transport.close()

    def finish(self, stream, error=None):
        future, response = self.answers.pop(stream)
        settle(future, response, error)

    def data_received(self, data):
        for event in self.h2.receive_data(self.frames.take(data)):
            stream = getattr(event, "stream_id", None)
            if stream in self.answers:
                self.on_event(event, stream)
        self.flush()
        if self.frames.last_stream is not None:
            self.ending = True
            for stream in [s for s in self.answers if s > self.frames.last_stream]:
                self.finish(stream, Unprocessed())
        if self.ending and not self.answers:
            self.close()

    def on_event(self, event, stream):
        response = self.answers[stream][1]
        if isinstance(event, h2.events.ResponseReceived):
            response.status = int(dict(event.headers)[":status"])
            response.headers = [(n, v) for n, v in event.headers if not n.startswith(":")]
        elif isinstance(event, h2.events.DataReceived):
            response.body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamReset):
            self.finish(stream, StreamReset(f"error {event.error_code}"))
        elif isinstance(event, h2.events.StreamEnded):
            self.finish(stream)

    def connection_lost(self, why):
        self.ending = True
        for stream in list(self.answers):
            self.finish(stream, Closed(f"the HTTP/2 connection ended: {why!r}"))


async def open_lane(edge, protocol):
    """A connection for one of the protocols of clients.py."""
    alpn = {"h1": "http/1.1", "h2": "h2"}[protocol.removeprefix("tls-")]
    tls = protocol.startswith("tls-")
    scheme = "https" if tls else "http"
    _, lane = await asyncio.get_running_loop().create_connection(
        Lane1 if alpn == "http/1.1" else lambda: Lane2(scheme),
        "127.0.0.1",
        port_of(edge, protocol),
        ssl=tls_context(alpn) if tls else None,
        server_hostname="edge.test" if tls else None,
    )
    return lane
