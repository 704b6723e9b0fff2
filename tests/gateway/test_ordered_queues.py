"""Ordered queues of the adapters."""

from __future__ import annotations

import asyncio

from gateway.platforms.ordered_queues import OrderedQueues
from support.adapters import QUICK_BACKOFF
from support.waiting import async_wait_until


async def test_a_full_queue_catches_up_once_and_then_accepts_new_messages() -> None:
    queues, handled, gate = OrderedQueues("X", QUICK_BACKOFF, max_jobs=3), [], asyncio.Event()

    async def wait() -> None:
        await gate.wait()

    async def catch_up() -> None:
        handled.append("caught up")

    queues.add("a", wait, catch_up)
    for number in range(10):

        async def note(number: int = number) -> None:
            handled.append(number)

        queues.add("a", note, catch_up)
    assert len(queues) == 4
    gate.set()
    await async_wait_until(lambda: handled[-1:] == ["caught up"])
    queues.add("a", note, catch_up)
    await async_wait_until(lambda: not len(queues))
    await queues.close()
    assert handled == [0, 1, "caught up", 9]


async def test_catching_up_that_fails_is_tried_again_and_added_no_second_time() -> None:
    queues, tries = OrderedQueues("X", QUICK_BACKOFF, max_jobs=1), []

    async def fail_at_first() -> None:
        tries.append(1)
        if len(tries) < 5:
            raise OSError("not now")

    async def nothing() -> None:
        await asyncio.sleep(0)

    queues.add("a", nothing, fail_at_first)
    queues.add("a", nothing, fail_at_first)
    await async_wait_until(lambda: not len(queues))
    await queues.close()
    assert len(tries) == 5
