"""A DNS server for tests, and an edge whose machine asks it: in a mount namespace with an /etc/resolv.conf of its own."""

import os
import random
import socket
import threading

from edge import Edge

A, IN, HEADER = 1, 1, 12
ANSWER, AUTHORITATIVE = 0x8000, 0x0400
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 0, 2, 3, 5
CAN_MOUNT = os.geteuid() == 0 and os.system("unshare -m mount --bind /etc/hostname /etc/resolv.conf 2>/dev/null") == 0


class Names:
    """table: {name: [IPv4 addresses], or a response code, or None for silence}; without addresses a name is there all the same. Any other
    name does not exist. asked: how often, by name. Answers may be used for no time at all."""

    def __init__(self):
        self.table, self.asked = {}, {}
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while True:
            self.address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
            try:
                self.sock.bind((self.address, 53))  # resolv.conf has no way to tell another port
                break
            except OSError as e:
                assert e.errno == 98, e
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def serve(self):
        while True:
            try:
                query, peer = self.sock.recvfrom(4096)
            except OSError:
                return
            answer = self.answer(query)
            if answer is not None:
                self.sock.sendto(answer, peer)

    def answer(self, query):
        at, labels = HEADER, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        name, kind, question = ".".join(labels), int.from_bytes(query[at + 1 : at + 3], "big"), query[HEADER : at + 5]
        self.asked[name] = self.asked.get(name, 0) + 1
        found = self.table.get(name, NO_SUCH_NAME)
        if found is None:
            return None
        code, addresses = (NO_ERROR, found) if isinstance(found, list) else (found, [])
        records = [
            b"\xc0\x0c" + A.to_bytes(2, "big") + IN.to_bytes(2, "big") + bytes(4) + b"\0\4" + socket.inet_aton(address)
            for address in (addresses if kind == A else [])
        ]
        flags = ANSWER | AUTHORITATIVE | (int.from_bytes(query[2:4], "big") & 0x0100) | code
        return query[:2] + flags.to_bytes(2, "big") + b"\0\1" + len(records).to_bytes(2, "big") + bytes(4) + question + b"".join(records)


class EdgeAsking(Edge):
    """names: the server that this edge, and nothing else on the machine, asks."""

    def __init__(self, names, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.resolv_conf = self.dir / "resolv.conf"
        self.resolv_conf.write_text(f"nameserver {names.address}\noptions attempts:1 timeout:1\n")

    def argv(self):
        mount = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        return ["unshare", "-m", "sh", "-c", mount, str(self.resolv_conf), *super().argv()]
