"""Faults that tests inflict on an edge."""

import os
import signal

from clients import fetch
from edge import poll


class NoAgent:
    """Inside the block the edge's only agent is gone, and the launcher stopped, so that it starts no other; lines that
    are written meanwhile arrive after the block. headers: without which the edge would forward nothing."""

    def __init__(self, edge, headers=()):
        self.edge, self.headers = edge, headers

    def __enter__(self):
        self.killed = self.edge.agent_pids()[0]
        self.edge.signal(signal.SIGSTOP)
        os.kill(self.killed, signal.SIGKILL)

    def __exit__(self, *unused):
        self.edge.signal(signal.SIGCONT)
        poll(lambda: self.edge.agent_pids().get(0) not in (None, self.killed), "the launcher started another agent")
        poll(lambda: self.edge.internal("/readyz")[0] == 200, "the new agent is ready")
        poll(self.decided, "requests are decided again")  # HAProxy learns of the agent with its next check

    def decided(self):
        response = fetch(self.edge, "GET", "/recovered", self.headers)
        return response.status == 200 and "x-edge-client-ip" in dict(response.json()["headers"])
