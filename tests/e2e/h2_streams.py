"""An HTTP/2 client with many streams at once, each open as long as its test wants it."""

from dataclasses import dataclass, field

import h2.events

from clients import Closed, Http2, as_bytes


@dataclass
class Seen:
    """What has come on a stream. trailers: None until there are any."""

    status: int = 0
    headers: list = field(default_factory=list)
    data: bytes = b""
    trailers: list = None
    ended: bool = False
    reset: int = None


class Streams(Http2):
    """reads: false lets each stream receive its first 65,535 bytes and no more, while there is room for many such streams."""

    def __init__(self, port, tls=False, reads=True):
        self.seen, self.reads = {}, reads
        super().__init__(port, tls)
        if not reads:
            self.h2.increment_flow_control_window(10_000_000)
            self.flush()

    def open(self, target, headers=(), method="POST", end=False, host="edge.test"):
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", self.scheme), (":path", target), (":authority", host)]
        self.seen[stream] = Seen()
        self.h2.send_headers(stream, fields + [(as_bytes(n), as_bytes(v)) for n, v in headers], end_stream=end)
        self.flush()
        return stream

    def send(self, stream, data, end=False):
        self.send_body(stream, data, end)
        self.flush()

    def send_trailers(self, stream, trailers):
        self.h2.send_headers(stream, trailers, end_stream=True)
        self.flush()

    def handle(self, data):
        """Http2's, and what it says goes to seen."""
        events = super().handle(data)
        for event in events:
            seen = self.seen.get(getattr(event, "stream_id", None))
            if seen is None:
                continue
            if isinstance(event, h2.events.ResponseReceived):
                seen.status, seen.headers = int(dict(event.headers)[":status"]), [(n, v) for n, v in event.headers if n[0] != ":"]
            elif isinstance(event, h2.events.DataReceived):
                seen.data += event.data
                if self.reads:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.TrailersReceived):
                seen.trailers = list(event.headers)
            elif isinstance(event, h2.events.StreamReset):
                seen.reset = int(event.error_code)
            elif isinstance(event, h2.events.StreamEnded):
                seen.ended = True
        self.flush()
        return events

    def until(self, stream, check):
        """What the stream has seen, once check(it) is true."""
        seen = self.seen[stream]
        while not check(seen):
            assert seen.reset is None and not seen.ended, f"never came: {seen}"
            data = self.sock.recv(65536)
            if not data:
                raise Closed(str(seen))
            self.handle(data)
        return seen

    def whole(self, stream):
        """The whole answer."""
        return self.until(stream, lambda seen: seen.ended)
