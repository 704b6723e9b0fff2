"""Turns of others, however many, do not keep the owner waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.gateways import outbox_texts, running_gateway
from support.hostile_people import ChatPeople, telegram_config
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

ASKS = "{calls: [{name: clarify, arguments: {question: Which one?}}]}"


async def test_the_owner_is_answered_while_questions_to_others_are_open(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{ASKS}, {ASKS}, {{say: Hello Ada.}}, {{say: Hello again.}}]")
    users = ["ada", "bob", "eve", "mallory"]
    config = telegram_config(allowed_users=users, allow_admin_from=["ada"])
    config.max_concurrent_sessions = 2
    async with running_gateway(db, tmp_path, config, drain=0) as service:
        people = ChatPeople(db, service)
        for user in ("bob", "eve"):
            await people.send(user, "hi")
        await async_wait_until(lambda: len(service.questions.open_keys()) == 2)
        await people.send("mallory", "hi")  # waits
        await people.send("ada", "hi")
        await async_wait_until(lambda: outbox_texts(db) == ["Hello Ada."])
        await people.send("ada", "hi")
        await async_wait_until(lambda: outbox_texts(db) == ["Hello Ada.", "Hello again."])
        assert db.inbox.waiting_places() == 1
