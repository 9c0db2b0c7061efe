import pytest

from infrastructure.rate_limits.windows import MemoryWindows
from shared.middleware.rate_limits import Limit, RateLimits, TooManyRequests
from shared.middleware.request_context import RequestContext


class Table:
    def __init__(self, **limits):
        self._limits = limits

    async def find(self, plan, _route_class):
        return self._limits.get(plan)


async def passed(rate_limits, requests, plan):
    count = 0
    for _ in range(requests):
        try:
            await rate_limits.count(RequestContext(), "user:1", plan=plan, route_class="read")
        except TooManyRequests:
            continue
        count += 1
    return count


async def test_windows_of_two_lengths_are_counted_separately():
    """This happens when a user acts for two accounts or when a limit's row was changed."""
    table = Table(free=Limit("read", 3, 60), pro=Limit("read", 5, 3_600))
    rate_limits = RateLimits(table, MemoryWindows(now_s=lambda: 1_000.0))

    turns = [(await passed(rate_limits, 2, "free"), await passed(rate_limits, 2, "pro")) for _ in range(4)]

    assert [sum(counts) for counts in zip(*turns, strict=True)] == [3, 5]


@pytest.mark.parametrize("plan", ["free", "enterprise"])
async def test_route_class_without_a_limit_is_not_counted(plan):
    context = RequestContext()

    await RateLimits(Table(), MemoryWindows()).count(context, "user:1", plan=plan, route_class="read")

    assert context.response_headers == []
