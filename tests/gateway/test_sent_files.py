"""Files that the agent sends to the chat it talks in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform, PlatformConfig
from hermes_agent.tools.send_file import SEND_FILE_TOOL
from support.gateways import running_gateway
from support.telegram_server import TelegramServer
from support.telegram_setup import TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, tmp_path)


def config() -> GatewayConfig:
    extra = {"allowed_users": ["7"], "allow_admin_from": ["7"]}
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=extra)})


def call(**arguments: str) -> str:
    return json.dumps({"calls": [{"name": SEND_FILE_TOOL, "arguments": arguments}]})


async def test_the_agent_sends_files_with_their_names_before_its_answer(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any
) -> None:
    (tmp_path / "Report März.pdf").write_bytes(b"%PDF report")
    (tmp_path / "tune.mp3").write_bytes(b"ID3 tune")
    (tmp_path / "plan.png").write_bytes(b"\x89PNG plan")
    calls = [
        call(path="Report März.pdf", caption="The report"),
        call(path="tune.mp3"),
        call(path="plan.png"),
    ]
    answering(f"[{', '.join(calls)}, {{say: Sent.}}]")
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("send me the files")
        await async_wait_until(lambda: len(setup.server.sent) == 4)
    sent = [(item.text, item.file) for item in setup.server.sent]
    assert sent == [
        ("The report", b"%PDF report"),
        ("", b"ID3 tune"),
        ("", b"\x89PNG plan"),
        ("Sent.", None),
    ]


async def test_a_file_that_is_changed_later_arrives_as_it_was(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any
) -> None:
    (tmp_path / "a.txt").write_text("before")
    change = {"name": "write_file", "arguments": {"path": "a.txt", "content": "after"}}
    write = json.dumps({"calls": [change]})
    # A file that was not read is replaced when the agent asks again.
    answering(f"[{call(path='a.txt')}, {write}, {write}, {{say: Sent.}}]")
    setup.server.chats.clear()  # nothing arrives yet
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("send me the file")
        await async_wait_until(lambda: (tmp_path / "a.txt").read_text() == "after")
        setup.server.chats.add(7)
        await async_wait_until(lambda: setup.server.sent)
    assert setup.server.sent[0].file == b"before"


async def test_credentials_are_not_sent(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any, hermes_home: Path
) -> None:
    (hermes_home / ".env").write_text("TELEGRAM_BOT_TOKEN=secret\n")
    answering(f"[{call(path=str(hermes_home / '.env'))}, {{say: No.}}]")
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("send me your token")
        await async_wait_until(lambda: setup.server.sent)
    assert [(item.text, item.file) for item in setup.server.sent] == [("No.", None)]


async def test_a_name_with_control_characters_does_not_hold_up_the_chat(
    db: SessionDB, tmp_path: Path, setup: TelegramSetup, answering: Any
) -> None:
    (tmp_path / "a\nb.txt").write_text("text")
    answering(f"[{call(path=f'a{chr(10)}b.txt')}, {{say: Sent.}}]")
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("send me the file")
        await async_wait_until(lambda: len(setup.server.sent) == 2)
    assert [(item.text, item.file) for item in setup.server.sent] == [
        ("", b"text"),
        ("Sent.", None),
    ]
