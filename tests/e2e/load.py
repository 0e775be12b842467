"""Steady requests in the background, over connections that are kept, to see whether any fails."""

import threading
import time

from clients import Closed, StreamReset, Unprocessed, client


class Load:
    """One thread and one kept connection for each entry of protocols. A request fails when it gets no answer or another
    status than 200. What the protocols let a client do unasked is no failure: to follow `Connection: close`, or to send
    again what a GOAWAY says was not processed."""

    def __init__(self, edge, target="/load", protocols=("h1", "h1", "h2"), per_second=50):
        self.edge, self.target, self.pause = edge, target, 1 / per_second
        self.failures, self.answered, self.changed = [], 0, threading.Condition()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(p,), daemon=True) for p in protocols]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)

    def wait_more(self, n):
        """Returns once n more requests were answered."""
        with self.changed:
            goal = self.answered + n
            assert self.changed.wait_for(lambda: self.answered >= goal, 30), f"{goal - self.answered} of {n} answers missing"

    def fail(self, protocol, why):
        self.failures.append(f"{time.strftime('%H:%M:%S')} {protocol}: {why}")

    def ask(self, connection, protocol):
        """One request; false when the connection is at its end."""
        response = connection.request("GET", self.target)
        if response.status != 200:
            self.fail(protocol, f"{response.status} {response.body[:200]!r}")
        with self.changed:
            self.answered += 1
            self.changed.notify_all()
        if protocol.endswith("h2"):
            return connection.last_stream is None
        return response.get("connection") != "close"

    def run(self, protocol):
        connection = None
        while not self.stopping.wait(self.pause):
            try:
                connection = connection or client(self.edge, protocol)
                keep = self.ask(connection, protocol)
            except Unprocessed:
                keep = False
            except (Closed, StreamReset, OSError) as e:
                self.fail(protocol, repr(e))
                keep = False
            if not keep and connection:
                connection.close()
                connection = None
        if connection:
            connection.close()
