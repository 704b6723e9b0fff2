"""IDs are unique, ordered, and can be read from their stored form."""

from __future__ import annotations

import os
import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.clock import ManualClock, SystemClock
from hermes_core.errors import IdFormatError
from hermes_core.ids import (
    MessageIds,
    foreign_row_id,
    new_gateway_session_id,
    new_session_id,
    uid_bytes,
)

pytestmark = pytest.mark.clock


@pytest.fixture
def in_berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_a_session_id_is_local_time_and_hex():
    clock = ManualClock(now=1_750_000_000.0)
    assert new_session_id(clock, lambda n: b"\xab" * n) == "20250615_170640_ababab"
    assert new_gateway_session_id(clock, lambda n: b"\x01" * n) == "20250615_170640_01010101"


def test_session_ids_of_one_second_differ():
    clock = ManualClock()
    assert len({new_gateway_session_id(clock) for _ in range(1000)}) == 1000


def test_an_id_is_a_version_7_uuid_without_dashes():
    uid = MessageIds(SystemClock()).new()
    assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}", uid)


def test_an_id_contains_its_creation_time():
    assert int(MessageIds(ManualClock(now=1_750_000_000.123)).new()[:12], 16) == 1750000000123


def test_ids_of_one_millisecond_sort_in_the_order_of_creation():
    ids = MessageIds(ManualClock())
    created = [ids.new() for _ in range(20_000)]
    assert created == sorted(created)
    assert len(set(created)) == len(created)


def test_the_order_holds_when_the_counter_overflows_a_field():
    ids = MessageIds(
        ManualClock(), lambda n: (((1 << 18) - 5) << 3).to_bytes(4) if n == 4 else os.urandom(n)
    )
    created = [ids.new() for _ in range(10)]
    assert created == sorted(created)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_the_order_holds_when_the_clock_jumps(jumps):
    clock = ManualClock()
    ids = MessageIds(clock)
    created = []
    for seconds in jumps:
        clock.jump(seconds)
        created.append(ids.new())
    assert created == sorted(created)


def test_threads_sharing_one_generator_get_unique_ordered_ids():
    ids = MessageIds(SystemClock())
    results = [[] for _ in range(8)]

    def work(own_ids):
        own_ids.extend(ids.new() for _ in range(5000))

    threads = [threading.Thread(target=work, args=(own_ids,)) for own_ids in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({uid for own_ids in results for uid in own_ids}) == 40_000
    assert all(own_ids == sorted(own_ids) for own_ids in results)


def test_a_forked_counter_creates_different_ids():
    zero_then_random = iter([b"\0\0\0\0", b"\0\0\0\0"])

    def entropy(n):
        return next(zero_then_random) if n == 4 else os.urandom(n)

    clock = ManualClock()
    parent, child = MessageIds(clock, entropy), MessageIds(clock, entropy)
    assert {parent.new() for _ in range(1000)}.isdisjoint({child.new() for _ in range(1000)})


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_converted_to_its_bytes(data):
    assert uid_bytes(data.hex()) == data


@pytest.mark.parametrize(
    "text", ["", "row-1", "A" * 32, "g" * 32, "0" * 31, "0" * 33, " " * 32, "٣" * 32]
)
def test_a_malformed_id_is_refused(text):
    with pytest.raises(IdFormatError):
        uid_bytes(text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_foreign_row_is_identified_by_its_number(row_id):
    assert foreign_row_id(f"row-{row_id}") == row_id


@pytest.mark.parametrize(
    "text", ["row-", "row-01", "row- 1", "row-1 ", "row-1_0", "row-٣", "row-x", "1"]
)
def test_other_texts_are_not_foreign_rows(text):
    assert foreign_row_id(text) is None


@given(st.text())
def test_a_message_id_is_never_a_foreign_row(text):
    row_id = foreign_row_id(text)
    assert row_id is None or f"row-{row_id}" == text
    assert foreign_row_id(MessageIds(ManualClock()).new()) is None
