"""Input that arrives while a turn runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.turn_control import Steering, join_texts
from hermes_conversation.attachments import read
from hermes_conversation.pending_input import AfterTurn, PendingInput, PromptInput, ReturnedInput
from hermes_state import SessionDB
from support.identities import act_as
from support.images import PIXEL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class RecordingAgent:
    """An agent without a turn: its real steering queue, and a count of interrupts."""

    def __init__(self) -> None:
        self.steering = Steering()
        self.interrupts = 0

    def steer(self, text: str) -> None:
        self.steering.add(text)

    def interrupt(self) -> None:
        self.interrupts += 1

    def pending_steering(self) -> list[str]:
        return self.steering.texts()

    def pop_steering(self) -> str:
        return join_texts(self.steering.pop_all())


class StoredConversation:
    """A conversation as the queue sees it, over a real store."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.agent: Any = RecordingAgent()
        self.session_id = "one"


@pytest.fixture
def conversation() -> Iterator[StoredConversation]:
    with SessionDB() as db:
        yield StoredConversation(db)


def test_queued_input_becomes_the_next_turns_in_order(conversation: StoredConversation) -> None:
    pending = PendingInput(conversation)
    pending.queue("first")
    pending.queue("second")
    assert pending.after_turn(is_complete=True) == AfterTurn(PromptInput("first"))
    assert pending.after_turn(is_complete=True) == AfterTurn(PromptInput("second"))
    assert pending.after_turn(is_complete=True) == AfterTurn()


def test_unread_steering_comes_before_queued_input(conversation: StoredConversation) -> None:
    pending = PendingInput(conversation)
    pending.queue("later")
    pending.steer("now")
    pending.steer("and this")
    assert conversation.agent.pending_steering() == ["now", "and this"]
    assert pending.after_turn(is_complete=True) == AfterTurn(PromptInput("now\n\nand this"))
    assert pending.after_turn(is_complete=True) == AfterTurn(PromptInput("later"))


def test_steering_that_was_read_is_not_submitted_again(conversation: StoredConversation) -> None:
    pending = PendingInput(conversation)
    pending.steer("now")
    conversation.agent.pop_steering()
    pending.mark_read()
    assert pending.waiting() == []
    assert pending.after_turn(is_complete=True) == AfterTurn()


def test_steering_that_arrives_while_the_agent_reads_is_kept(
    conversation: StoredConversation,
) -> None:
    pending = PendingInput(conversation)
    pending.steer("first")
    conversation.agent.pop_steering()  # the turn reads it
    pending.steer("second")  # before the front end learns of that
    pending.mark_read()
    assert pending.waiting() == ["second"]
    assert pending.after_turn(is_complete=True) == AfterTurn(PromptInput("second"))


def test_after_an_interrupt_the_rest_is_returned_to_the_user(
    conversation: StoredConversation,
) -> None:
    pending = PendingInput(conversation)
    pending.steer("steered")
    pending.queue("queued")
    pending.interrupt("instead")
    pending.interrupt("and instead")
    assert conversation.agent.interrupts == 2
    result = pending.after_turn(is_complete=False)
    assert result == AfterTurn(
        PromptInput("instead\n\nand instead"), (PromptInput("steered"), PromptInput("queued"))
    )
    pending.queue("again")
    assert pending.after_turn(is_complete=True) == AfterTurn(PromptInput("again"))


def test_a_failed_turn_returns_what_waited(conversation: StoredConversation) -> None:
    pending = PendingInput(conversation)
    pending.queue("queued")
    assert pending.after_turn(is_complete=False) == AfterTurn(
        PromptInput(), (PromptInput("queued"),)
    )


@pytest.mark.parametrize("mode", ["steer", "queue", "interrupt"])
def test_no_mode_loses_input(conversation: StoredConversation, mode: Any) -> None:
    pending = PendingInput(conversation)
    pending.submit("x", mode)
    assert pending.after_turn(is_complete=mode != "interrupt").next_input.text == "x"


def test_pending_input_of_a_crashed_process_is_returned_once(
    conversation: StoredConversation,
) -> None:
    before = PendingInput(conversation)
    before.steer("steered")
    before.queue("queued")
    before.interrupt("instead")
    after = PendingInput(conversation)
    assert after.restore().text == "steered\n\nqueued\n\ninstead"
    assert after.restore() == ReturnedInput()


def test_pictures_of_a_crashed_process_are_returned(
    conversation: StoredConversation, tmp_path: Path
) -> None:
    path = tmp_path / "dot.png"
    path.write_bytes(PIXEL)
    before = PendingInput(conversation)
    before.queue("plain")
    before.queue("look", [read(path)])
    restored = PendingInput(conversation).restore()
    assert restored == ReturnedInput("plain\n\nlook", (str(path),))


def test_input_of_an_older_release_is_returned(conversation: StoredConversation) -> None:
    conversation.db.set_meta("hermes_unread:one", '["first", "second"]')
    assert PendingInput(conversation).restore() == ReturnedInput("first\n\nsecond")


def test_nothing_is_left_in_the_store_once_the_turn_is_over(
    conversation: StoredConversation,
) -> None:
    pending = PendingInput(conversation)
    pending.interrupt("instead")
    pending.after_turn(is_complete=False)
    assert PendingInput(conversation).restore() == ReturnedInput()


def test_pending_input_of_a_turn_in_another_process_stays_there(
    conversation: StoredConversation,
) -> None:
    conversation.db.create_session("one", "cli")
    PendingInput(conversation).queue("queued")
    with SessionDB() as other:
        act_as(
            other,
            other.identity._replace(process_id="another", host="elsewhere", boot_id="other boot"),
        )
        lease = other.leases.acquire("one", seconds=600)
        assert PendingInput(conversation).restore() == ReturnedInput()
        other.leases.release(lease)
    assert PendingInput(conversation).restore().text == "queued"
