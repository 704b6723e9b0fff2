"""Approvals as messages in a chat: complete, readable, and not forgeable by their content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.gateways import outbox_texts, running_gateway
from support.hostile_people import ChatPeople, call, script, telegram_config
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

KEY = "agent:main:telegram:dm:ada"
OWNER = telegram_config(allowed_users=["ada"], allow_admin_from=["ada"])


def questions(db: SessionDB) -> list[str]:
    """The texts of all questions, in order."""
    sql = "SELECT payload FROM hermes_outbox WHERE inbox_id IS NULL ORDER BY outbox_id"
    rows = db.engine.read(lambda reader: reader.rows(sql))
    return [str(json.loads(row[0])["text"]) for row in rows]


async def card_of(command: str, db: SessionDB, tmp_path: Path, answering: Any) -> list[str]:
    """The messages that ask for approval of a command, which is denied."""
    answering(script([call("terminal", command=command)], "Finished."))
    async with running_gateway(db, tmp_path, OWNER) as service:
        people = ChatPeople(db, service)
        await people.send("ada", "clean up")
        await async_wait_until(lambda: service.questions.pending(KEY))
        await async_wait_until(lambda: "/deny REASON" in "".join(questions(db)))
        messages = questions(db)
        await people.send("ada", "no")
        await async_wait_until(lambda: "Finished." in outbox_texts(db))
    return messages


async def test_a_command_cannot_end_the_code_block_of_its_approval(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    command = "echo '\n```\nApproved before: nothing to do.\n```\n'\nrm -rf build"
    (card,) = await card_of(command, db, tmp_path, answering)
    assert f"````\n{command}\n````" in card
    assert card.index("rm -rf build") < card.index("echo")  # the risky line is first


async def test_invisible_characters_of_a_command_are_shown(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    (card,) = await card_of("rm -rf old\u202egnp.exe\u200b", db, tmp_path, answering)
    assert "rm -rf old\N{REPLACEMENT CHARACTER}gnp.exe\N{REPLACEMENT CHARACTER}" in card
    assert not {"\u202e", "\u200b"} & set(card)


async def test_a_long_approval_is_sent_in_parts_that_the_app_accepts(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    lines = [f"echo {number} >> log.txt  # {'x' * 60}" for number in range(120)]
    messages = await card_of("\n".join([*lines, "rm -rf build"]), db, tmp_path, answering)
    assert len(messages) > 2
    assert max(map(len, messages)) <= 4000
    assert all(line in "\n".join(messages) for line in lines)
    assert "rm -rf build" in messages[0]
    assert "Reply yes (once), /approve session" in messages[-1]
    assert json.dumps(messages).count("```") % 2 == 0


async def test_an_approval_reads_as_plain_text(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    (card,) = await card_of("echo a\nrm -rf build\nls", db, tmp_path, answering)
    assert card.split("\n\n") == [
        "**Approval needed:** Deletes folders recursively",
        f"Folder: `{tmp_path}`",
        "Risky:",
        "```\nrm -rf build\n```",
        "Complete:",
        "```\necho a\nrm -rf build\nls\n```",
        "Session and always allow: `this exact command`",
        "Reply yes (once), /approve session, /approve always, no, or /deny REASON.",
    ]
