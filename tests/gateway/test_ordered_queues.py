"""What adapters share: backoff, queues, what is remembered, addresses of files."""

from __future__ import annotations

import asyncio

from gateway.platforms.ordered_queues import OrderedQueues
from support.adapters import QUICK, waited


async def test_a_full_line_catches_up_once_and_takes_again_what_comes_then() -> None:
    queues, done, gate = OrderedQueues("X", QUICK, max_jobs=3), [], asyncio.Event()

    async def wait() -> None:
        await gate.wait()

    async def catch_up() -> None:
        done.append("caught up")

    queues.add("a", wait, catch_up)
    for number in range(10):

        async def note(number: int = number) -> None:
            done.append(number)

        queues.add("a", note, catch_up)
    assert len(queues) == 4
    gate.set()
    await waited(lambda: done[-1:] == ["caught up"])
    queues.add("a", note, catch_up)
    await waited(lambda: not len(queues))
    await queues.close()
    assert done == [0, 1, "caught up", 9]


async def test_catching_up_that_fails_is_tried_again_and_added_no_second_time() -> None:
    queues, tries = OrderedQueues("X", QUICK, max_jobs=1), []

    async def fail_at_first() -> None:
        tries.append(1)
        if len(tries) < 5:
            raise OSError("not now")

    async def nothing() -> None:
        await asyncio.sleep(0)

    queues.add("a", nothing, fail_at_first)
    queues.add("a", nothing, fail_at_first)
    await waited(lambda: not len(queues))
    await queues.close()
    assert len(tries) == 5
