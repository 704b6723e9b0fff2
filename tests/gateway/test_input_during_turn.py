"""Input during a turn: it steers, is queued or replaces the turn, and is not lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.config import Platform
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.config.file import ConfigFile
from support.gateways import conversation_texts, local_message, outbox_texts, running_gateway
from support.hostile_people import ChatPeople, telegram_config
from support.model_servers import HeldServer
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


CALL = "{name: terminal, arguments: {command: echo}}"
LOOK = f"[{{say: Looking., calls: [{CALL}]}}, {{say: %s}}]"
ENDLESS = "one two " + "more " * 3000  # lasts longer than a test may


def draft_text(db: SessionDB) -> str:
    sql = "SELECT piece FROM hermes_draft ORDER BY part"
    return "".join(row[0] for row in db.engine.read(lambda reader: reader.rows(sql)))


def event(text: str, number: str, **fields: Any) -> MessageEvent:
    source = SessionSource(Platform.LOCAL, "c1", user_id="u1", user_name="Ada")
    return MessageEvent(text, source=source, message_id=number, **fields)


async def test_steering_is_read_by_the_turn_and_answered_with_it(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering(LOOK % "Both done.", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", event("and quickly", "m2"))
        model.release()
        await async_wait_until(lambda: outbox_texts(db) == ["Both done."])
        await async_wait_until(lambda: db.inbox.waiting_places() == 0)
    texts = [
        item for item in conversation_texts(db) if item in {"first", "and quickly", "Both done."}
    ]
    assert texts == ["first", "and quickly", "Both done."]
    assert [item.state for item in db.chats.find_incoming("m2")] == ["done"]


async def test_steering_a_turn_did_not_read_is_answered_after_it(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering("[{say: First.}, {say: Second.}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", event("later", "m2"))
        model.release()
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    assert outbox_texts(db)[1] == "Second."
    assert conversation_texts(db).count("later") == 1


async def test_steering_a_turn_did_not_read_reaches_the_model_once(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering(f"[{{say: First.}}, {{calls: [{CALL}]}}, {{say: Second.}}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", event("later", "m2"))
        model.release()
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    sent = [item["content"] for item in model.requests[-1]["messages"] if item["role"] == "user"]
    assert sent == ["first", "later"]


async def test_a_message_can_replace_the_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.busy_input", "interrupt")
    answering(f"[{{say: {ENDLESS}, pause: 0.1}}, {{say: Second.}}]")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await async_wait_until(
            lambda: service.conversations.all_running() and "one" in draft_text(db)
        )
        await service.receiver.receive("local", event("no, this", "m2"))
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    assert "(Stopped.)" in outbox_texts(db)[0]
    assert outbox_texts(db)[1] == "Second."


async def test_an_edit_of_a_pending_message_changes_it(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.busy_input", "queue")
    model = answering("[{say: First.}, {say: Second.}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", event("teh second", "m2"))
        await service.receiver.receive("local", event("the second", "m2", is_edit=True))
        model.release()
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    assert "the second" in conversation_texts(db)
    assert "teh second" not in conversation_texts(db)


async def test_another_person_cannot_change_a_pending_message(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.busy_input", "queue")
    model = answering("[{say: First.}, {say: Second.}, {say: Third.}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", event("the second", "m2"))
        await service.receiver.receive("local", local_message("none", "m2", "u2", is_edit=True))
        model.release()
        await async_wait_until(lambda: len(outbox_texts(db)) == 3)
    texts = conversation_texts(db)
    assert "the second" in texts
    assert "none" in texts


async def test_steering_of_a_person_with_other_rights_does_not_reach_the_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering(LOOK % "Done.", HeldServer)
    config = telegram_config(allowed_users=["ada", "bob"], allow_admin_from=["ada"])
    async with running_gateway(db, tmp_path, config) as service:
        people = ChatPeople(db, service)
        await people.send("ada", "look", "c1")
        await async_wait_until(service.conversations.all_running)
        await people.send("bob", "/steer read the diary", "c1")
        model.release()
        await async_wait_until(lambda: "Done." in outbox_texts(db))
    assert "read the diary" not in str(model.requests[:2])


async def test_an_edit_of_an_answered_message_is_sent_again_once(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("four apples", "m1"))
        await async_wait_until(lambda: len(outbox_texts(db)) == 1)
        for _ in range(2):
            await service.receiver.receive("local", event("five apples", "m1", is_edit=True))
        await service.receiver.receive("local", event("four apples", "m1", is_edit=True))
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    changed = [item for item in conversation_texts(db) if "five apples" in item]
    assert changed == ["(edited version of an earlier message)\nfive apples"]


async def test_an_edit_of_an_unknown_message_is_a_message(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}]")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", event("hello", "m1", is_edit=True))
        await async_wait_until(lambda: outbox_texts(db) == ["A1"])
    assert conversation_texts(db)[0] == "hello"


async def test_unread_steering_is_answered_after_the_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering("[{say: First.}, {say: Second.}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", local_message("/steer and quickly", "m2"))
        model.release()
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    assert conversation_texts(db).count("and quickly") == 1
    assert outbox_texts(db)[1] == "Second."


async def test_an_edit_of_a_message_the_turn_may_have_read_is_sent_again(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering(f"[{{calls: [{CALL}]}}, {{say: One.}}, {{say: Two.}}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", local_message("at four", "m2"))
        await service.receiver.receive("local", local_message("at five", "m2", is_edit=True))
        model.release()
        await async_wait_until(lambda: db.inbox.waiting_places() == 0 and outbox_texts(db))
    assert any("at five" in item for item in conversation_texts(db))
