"""What adapters share: backoff, queues, what is remembered, addresses of files."""

from __future__ import annotations

import asyncio

import pytest

from gateway.platforms import incoming_files
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.ordered_queues import OrderedQueues
from gateway.platforms.reconnect import REFUSED_DELAY_FACTOR, STABLE_SECONDS, ReconnectDelay
from hermes_core.backoff import Backoff
from support.adapters import QUICK, waited

HOSTS = ("discordapp.com",)


class Clock:
    """Time that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_with_each_failure_and_begin_anew_after_a_success() -> None:
    delay = ReconnectDelay(Backoff(1.0, 4.0))
    assert [delay.next_delay() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    delay.reset()
    assert delay.next_delay() == 1.0
    assert delay.next_delay(is_refused=True) == 4.0 * REFUSED_DELAY_FACTOR


def test_a_connection_counts_as_a_success_only_when_it_has_lasted() -> None:
    clock = Clock()
    delay = ReconnectDelay(Backoff(1.0, 4.0), clock)
    found = []
    for lasted in (0.0, 1.0, STABLE_SECONDS, 0.0):
        delay.connected()
        clock.now += lasted
        found.append(delay.next_delay())
    assert found == [1.0, 2.0, 1.0, 2.0]


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


def test_only_so_much_is_remembered() -> None:
    recent = RecentItems(limit=2)
    for word in ("a", "b", "c"):
        recent.add(word, word.upper())
    assert ("a" in recent, recent.note_of("c")) == (False, "C")
    assert (recent.forget("c"), recent.forget("c")) == ("C", None)


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("https://cdn.discordapp.com/attachments/1/2/a.png", True),
        ("http://cdn.discordapp.com/a.png", False),
        ("https://cdn.discordapp.com.evil.org/a.png", False),
        ("https://127.0.0.1/a.png", False),
        ("https://cdn.discordapp.com:99999/a.png", False),
        ("https://[/a.png", False),
    ],
)
def test_files_are_fetched_from_the_platform_only(url: str, is_own: bool) -> None:
    assert incoming_files.is_hosted_by(url, HOSTS, "") is is_own
