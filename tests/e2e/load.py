"""A steady load in the background, over connections that are kept, to see whether any request fails."""

import asyncio
import threading
import time
from dataclasses import dataclass, field

from clients import Closed, StreamReset, Unprocessed
from lanes import open_lane

PATIENCE = 10  # seconds that a client waits for an answer
LANES = 4  # connections of each protocol from the start; more are opened when these are busy
LATE = 0.1  # a request that is sent so much after it was due counts as late


@dataclass
class Tally:
    """What became of the requests. latencies: seconds from when a request was due, not from when it could be sent."""

    sent: int = 0
    answered: int = 0
    refused: int = 0
    resent: int = 0
    late: int = 0
    failures: list = field(default_factory=list)
    latencies: list = field(default_factory=list)

    def quantile_ms(self, q):
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


class Load:
    """An open loop: requests are due by the clock, per_second of them in all, over the protocols in turn; one that is answered
    late holds up none that follows, and each carries its number, so that an answer to another one is noticed.

    A request fails when it gets no whole answer within PATIENCE, another status than 200, or did not pass with the agent's
    verdict (x-edge-client-ip). What the protocols let a client do unasked is no failure: to follow `Connection: close`, or to
    send again what a GOAWAY says was not processed. fail_mode: the edge's own 503 with Retry-After counts as refused instead."""

    def __init__(self, edge, target="/load", protocols=("h1", "h2"), per_second=200, fail_mode=False):
        self.edge, self.target, self.protocols, self.per_second = edge, target, protocols, per_second
        self.fail_mode, self.tally, self.lanes = fail_mode, Tally(), {protocol: [] for protocol in protocols}
        self.changed, self.stopping = threading.Condition(), threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stopping.set()
        self.thread.join(3 * PATIENCE)
        assert not self.thread.is_alive(), "the load did not end"

    @property
    def failures(self):
        return self.tally.failures

    def wait_more(self, n):
        """Returns once n more requests were answered."""
        with self.changed:
            goal = self.tally.answered + n
            enough = self.changed.wait_for(lambda: self.tally.answered >= goal, 30 + 2 * n / self.per_second)
            assert enough, f"{goal - self.tally.answered} of {n} answers missing; failures: {self.failures[:5]}"

    def work(self):
        try:
            asyncio.run(self.run())
        except OSError as e:
            self.tally.failures.append(f"the load ended: {e!r}")

    async def run(self):
        for protocol in self.lanes:
            self.lanes[protocol] = [await open_lane(self.edge, protocol) for _ in range(LANES)]
        start, tasks = asyncio.get_running_loop().time(), set()
        while not self.stopping.is_set():
            due = start + self.tally.sent / self.per_second
            await asyncio.sleep(max(0, due - asyncio.get_running_loop().time()))
            task = asyncio.create_task(self.one(self.tally.sent, due))
            self.tally.sent += 1
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        for lane in sum(self.lanes.values(), []):
            lane.close()

    async def take_lane(self, protocol):
        """The connection that has rested longest, or a new one when all are busy."""
        lanes = self.lanes[protocol] = [lane for lane in self.lanes[protocol] if not lane.ending]
        lane = next((lane for lane in lanes if lane.free()), None)
        if lane:
            lanes.remove(lane)
        else:
            lane = await open_lane(self.edge, protocol)
        self.lanes[protocol].append(lane)
        return lane

    async def ask(self, protocol, target, due):
        lane = await self.take_lane(protocol)
        if asyncio.get_running_loop().time() - due > LATE:
            self.tally.late += 1
        try:
            return await lane.ask(target)
        except asyncio.CancelledError:
            lane.close()
            raise

    async def one(self, number, due):
        protocol, target = self.protocols[number % len(self.protocols)], f"{self.target}/{number}"
        response = None
        try:
            async with asyncio.timeout_at(due + PATIENCE):
                while response is None:
                    try:
                        response = await self.ask(protocol, target, due)
                    except Unprocessed:
                        self.tally.resent += 1
            fault = self.judge(response, target)
        except TimeoutError:
            fault = f"no answer within {PATIENCE} s"
        except (Closed, StreamReset, OSError) as e:
            fault = repr(e)
        with self.changed:
            self.tally.latencies.append(asyncio.get_running_loop().time() - due)
            if response is not None:
                self.tally.answered += 1
            if fault:
                self.tally.failures.append(f"{time.strftime('%H:%M:%S')} {protocol} {target}: {fault}")
            self.changed.notify_all()

    def judge(self, response, target):
        """What is wrong with an answer; None when nothing is."""
        if self.fail_mode and response.status == 503 and response.get("retry-after") == "1":
            self.tally.refused += 1
            return None
        if response.status != 200:
            return f"{response.status} {response.body[:200]!r}"
        received = response.json()
        if received["target"] != target:
            return f"the answer to {received['target']}"
        if ["x-edge-client-ip", "127.0.0.1"] not in received["headers"]:
            return "passed without a verdict"
        return None
