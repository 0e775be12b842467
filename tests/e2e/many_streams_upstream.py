"""The upstream of many_streams.py, a process of its own that ends with its standard input: `many_streams_upstream.py PERIOD` prints its
port, then holds streams. /events/NAME: an event at once and one every PERIOD seconds; /echo/NAME: a WebSocket that sends back what it
gets."""

import asyncio
import random
import re
import sys

import websocket

PERIOD_S = float(sys.argv[1])


class Connection(asyncio.Protocol):
    def __init__(self):
        self.buffer, self.name, self.number, self.is_echo = b"", None, 0, False

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        if self.name is None:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            self.begin(head)
            self.buffer = rest
        if self.is_echo:
            self.echo()

    def begin(self, head):
        what, self.name = re.match(rb"GET /(events|echo)/(\S+) ", head).groups()
        self.is_echo = what == b"echo"
        if self.is_echo:
            key = re.search(rb"(?i)\r\nsec-websocket-key: *(\S+)", head)[1].decode()
            proof = websocket.accept_of(key).encode()
            self.transport.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + proof + b"\r\n\r\n"
            )
        else:
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.send_event(random.uniform(0, PERIOD_S))

    def send_event(self, next_s):
        if self.transport.is_closing():
            return
        event = b"data: %s %d\n\n" % (self.name, self.number)
        self.number += 1
        self.transport.write(b"%x\r\n%s\r\n" % (len(event), event))
        asyncio.get_running_loop().call_later(next_s, self.send_event, PERIOD_S)

    def echo(self):
        """Every whole frame, unmasked; those here are short."""
        while len(self.buffer) >= 6 and len(self.buffer) >= 6 + (self.buffer[1] & 0x7F):
            size = self.buffer[1] & 0x7F
            assert self.buffer[1] & 0x80 and size < 126, "a short masked frame"
            payload = websocket.masked_with(self.buffer[2:6], self.buffer[6 : 6 + size])
            self.transport.write(websocket.encode(websocket.Frame(self.buffer[0] & 0x0F, payload)))
            self.buffer = self.buffer[6 + size :]


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
