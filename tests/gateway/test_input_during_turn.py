"""While a turn runs: what is written then is read, queued or takes its place, and is not lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.config import Platform
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.config.file import ConfigFile
from support.gateways import answers, message, said, started, until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


SLOW = "[{say: Looking., calls: [{name: terminal, arguments: {command: sleep 1}}]}, {say: %s}]"


def drafts(db: SessionDB) -> str:
    """What is being written, as far as it is on the disk."""
    sql = "SELECT group_concat(piece, '') FROM hermes_draft"
    return str(db.engine.read(lambda reader: reader.value(sql)) or "")


def event(text: str, number: str, **facts: Any) -> MessageEvent:
    source = SessionSource(Platform.LOCAL, "c1", user_id="u1", user_name="Ada")
    return MessageEvent(text, source=source, message_id=number, **facts)


async def test_what_is_written_to_a_turn_is_read_by_it_and_answered_with_it(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(SLOW % "Both done.")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", event("and quickly", "m2"))
        await until(lambda: answers(db) == ["Both done."])
        await until(lambda: db.waiting_places() == 0)
    words = [item for item in said(db) if item in {"first", "and quickly", "Both done."}]
    assert words == ["first", "and quickly", "Both done."]
    assert [item["state"] for item in db.find_incoming("m2")] == ["done"]


async def test_what_a_turn_did_not_read_is_answered_after_it(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: one two three four five six seven eight, pause: 0.1}, {say: Second.}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", event("later", "m2"))
        await until(lambda: len(answers(db)) == 2)
    assert answers(db)[1] == "Second."
    assert said(db).count("later") == 1


async def test_a_message_can_take_the_place_of_the_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.busy_input", "interrupt")
    answering("[{say: one two three four five six seven eight, pause: 0.3}, {say: Second.}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(lambda: service.conversations.all_running() and "one" in drafts(db))
        await service.receiver.receive("local", event("no, this", "m2"))
        await until(lambda: len(answers(db)) == 2)
    assert "(Stopped.)" in answers(db)[0]
    assert answers(db)[1] == "Second."


async def test_an_edit_of_what_still_waits_changes_it(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.busy_input", "queue")
    answering("[{say: one two three four, pause: 0.2}, {say: Second.}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", event("teh second", "m2"))
        await service.receiver.receive("local", event("the second", "m2", is_edit=True))
        await until(lambda: len(answers(db)) == 2)
    assert "the second" in said(db)
    assert "teh second" not in said(db)


async def test_an_edit_of_what_was_answered_is_said_again_once(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("four apples", "m1"))
        await until(lambda: len(answers(db)) == 1)
        for _ in range(2):
            await service.receiver.receive("local", event("five apples", "m1", is_edit=True))
        await service.receiver.receive("local", event("four apples", "m1", is_edit=True))
        await until(lambda: len(answers(db)) == 2)
    changed = [item for item in said(db) if "five apples" in item]
    assert changed == ["(edited version of an earlier message)\nfive apples"]


async def test_an_edit_of_a_message_that_never_came_is_a_message(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("hello", "m1", is_edit=True))
        await until(lambda: answers(db) == ["A1"])
    assert said(db)[0] == "hello"


async def test_what_is_steered_and_not_read_is_answered_after_the_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: one two three four five six seven eight, pause: 0.1}, {say: Second.}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", message("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", message("/steer and quickly", "m2"))
        await until(lambda: len(answers(db)) == 2)
    assert said(db).count("and quickly") == 1
    assert answers(db)[1] == "Second."


async def test_an_edit_of_what_the_turn_may_have_read_is_said_again(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    call = "{name: terminal, arguments: {command: sleep 1}}"
    answering(f"[{{calls: [{call}]}}, {{say: One.}}, {{say: Two.}}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", message("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", message("at four", "m2"))
        await service.receiver.receive("local", message("at five", "m2", is_edit=True))
        await until(lambda: db.waiting_places() == 0 and answers(db))
    assert any("at five" in item for item in said(db))
