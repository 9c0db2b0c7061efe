"""Event loop with virtual time: time advances when all tasks wait, and a hang raises ItHangs."""

import asyncio
import selectors


class ItHangs(AssertionError):
    pass


class _Selector(selectors.SelectSelector):
    loop = None

    def select(self, timeout=None):
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise ItHangs("all tasks wait and no timer is set")
        self.loop.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.now_s = 1_000.0
        selector = _Selector()
        super().__init__(selector)
        selector.loop = self

    def time(self):
        return self.now_s


def run(coroutine):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
