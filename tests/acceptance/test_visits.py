"""Opening a conversation and leaving it changes nothing, in every front end.

A history with every kind of content is made by the real programs. Each front end then opens
each conversation and leaves it without a message; the rows are compared before and after.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.local import socket_path
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from support.chat import LocalChatClient
from support.chat_page import page
from support.claude_files import ClaudeFile
from support.command_line import command
from support.daemons import DaemonClient, stopping_daemon
from support.dashboards import dashboard, dashboard_context
from support.editors import open_editor
from support.gateway_process import GatewayProcess
from support.images import PIXEL
from support.model_servers import configured_models
from support.plain_terminal import quit_chat, start_chat
from support.tmux import Tmux
from support.waiting import async_wait_until, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

TABLES = ("messages", "sessions", "hermes_boundary", "hermes_trash", "hermes_copy")
STEPS = (
    "[{say: A picture.}, {say: A file.},"
    " {calls: [{name: search_files, arguments: {pattern: x}}]}, {say: Looked.},"
    " {say: Undone.}, {say: Summary.}]"
)


def rows(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that a visit must not change."""
    with closing(sqlite3.connect(home / "state.db")) as connection:
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for table in TABLES
        }


@pytest.fixture
def server() -> Iterator[ScriptServer]:
    with configured_models() as configure, stopping_daemon():
        yield configure(STEPS)


@pytest.fixture
def visited(
    hermes: Hermes,
    hermes_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: ScriptServer,
) -> list[str]:
    """The conversations: with a picture, a file, a tool call, and undone, compacted and others."""
    del server
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.png").write_bytes(PIXEL)
    (tmp_path / "notes.txt").write_text("notes\n")
    for text in ("look @p.png", "read @notes.txt", "search"):
        finished = hermes("chat", "-q", text)
        assert finished.code == 0, finished.err
    file = ClaudeFile(tmp_path / "other").exchange("imported", "Yes.")
    assert hermes("import", "claude-code", str(file.home / ".claude"), "--yes").code == 0
    with SessionDB() as db:
        ended = [row.id for row in db.lists.sessions(limit=20)]
        db.create_session("undone", "cli")
        db.append_message("undone", "user", "one")
        db.append_message("undone", "assistant", "Undone.")
        db.edits.undo("undone")
        db.end_session("undone", "cli_close")
        db.create_session("compacted", "cli")
        for number in range(4):
            db.append_message("compacted", "user", f"{number}")
            db.append_message("compacted", "assistant", "Yes.")
        tail = db.get_messages_as_conversation("compacted")[-2:]
        db.archive_and_compact("compacted", [{"role": "user", "content": "Summary."}, *tail])
        db.end_session("compacted", "cli_close")
        db.create_session("open", "discord", is_owned=False)
        db.append_message("open", "user", "still open")
    assert len(ended) == 4
    return [*ended, "undone", "compacted", "open"]


def check_visits(home: Path, visited: list[str], visit: Callable[[str], None]) -> None:
    """Visit every conversation twice; nothing changes."""
    before = rows(home)
    for session_id in [*visited, *visited]:
        visit(session_id)
        assert rows(home) == before, session_id


def test_the_daemon_changes_nothing(hermes_home: Path, visited: list[str]) -> None:
    def visit(session_id: str) -> None:
        client = DaemonClient()
        client.open("session.resume", session_id=session_id)
        assert client.call("session.close") == {"closed": True}
        client.close()

    check_visits(hermes_home, visited, visit)


def test_the_page_changes_nothing(hermes_home: Path, visited: list[str]) -> None:
    with SessionDB() as db, dashboard(dashboard_context(db)) as served:

        def visit(session_id: str) -> None:
            with page(served) as client:
                client.open("session.resume", session_id=session_id, source="web")
                client.call("session.close", unless_running=True)

        check_visits(hermes_home, visited, visit)


def test_the_terminal_ui_changes_nothing(
    hermes_home: Path, tmp_path: Path, visited: list[str]
) -> None:
    def visit(session_id: str) -> None:
        with Tmux(tmp_path, 100, 30) as terminal:
            terminal.run(command("-r", session_id))
            terminal.wait_for("F1 keys")
            terminal.press("C-d")
            terminal.wait_for_end()

    check_visits(hermes_home, visited, visit)


def test_line_mode_changes_nothing(
    hermes_home: Path, visited: list[str], server: ScriptServer
) -> None:
    def visit(session_id: str) -> None:
        quit_chat(start_chat(server, "--resume", session_id))

    check_visits(hermes_home, visited, visit)


async def test_an_editor_changes_nothing(
    hermes_home: Path, visited: list[str], tmp_path: Path
) -> None:
    before = rows(hermes_home)
    for _ in range(2):
        async with open_editor() as editor:
            for session_id in visited:
                await editor.agent.load_session(
                    cwd=str(tmp_path), session_id=session_id, mcp_servers=[]
                )
        assert rows(hermes_home) == before


async def test_a_visitor_does_not_end_the_conversation_of_a_chat(
    hermes_home: Path, server: ScriptServer
) -> None:
    gateway = GatewayProcess()
    try:
        gateway.start()
        await async_wait_until(gateway.is_up)
        async with LocalChatClient(socket_path()) as client:
            await client.send("hello", "m1")
            await client.wait_for(1)
        with SessionDB() as db:
            (session_id,) = [row.id for row in db.lists.sessions(limit=5)]
        before = rows(hermes_home)
        await asyncio.to_thread(lambda: quit_chat(start_chat(server, "--resume", session_id)))
        visitor = DaemonClient()
        visitor.open("session.resume", session_id=session_id)
        visitor.call("session.close")
        visitor.close()
        assert rows(hermes_home) == before
    finally:
        gateway.cleanup()


def test_leaving_does_not_restore_a_conversation_from_the_trash(
    hermes: Hermes, hermes_home: Path, visited: list[str]
) -> None:
    assert visited
    with SessionDB() as db:
        found = db.lists.sessions(limit=20)
    picture = next(row.id for row in found if row.preview.startswith("look"))
    client = DaemonClient()
    client.open("session.resume", session_id=picture)
    assert hermes("sessions", "delete", picture, "-y").code == 0
    before = rows(hermes_home)
    client.call("session.close")
    client.close()
    assert rows(hermes_home) == before


def test_an_imported_conversation_is_copied_with_the_first_message(
    hermes: Hermes, hermes_home: Path, visited: list[str]
) -> None:
    imported = next(name for name in visited if name.startswith("claude-code-"))
    before = rows(hermes_home)["messages"]
    assert hermes("chat", "-r", imported, "-q", "and now?").code == 0
    with SessionDB() as db:
        (branch,) = [
            row for row in db.lists.sessions(limit=20) if row.session.parent_session_id == imported
        ]
        contents = [row["content"] for row in db.get_messages(branch.id)]
    assert contents[:3] == ["imported", "Yes.", "and now?"]
    assert [row for row in rows(hermes_home)["messages"] if row in before] == before


def test_the_last_one_out_ends_the_conversation(hermes_home: Path, server: ScriptServer) -> None:
    child = start_chat(server)
    child.sendline("one")
    child.expect_exact("A picture.")
    with SessionDB() as db:
        (session_id,) = [row.id for row in db.lists.sessions(limit=5)]
        client = DaemonClient()
        client.open("session.resume", session_id=session_id)
        client.call("prompt.submit", text="two")
        client.wait_for("message.complete")
        client.call("session.close")  # it wrote to the conversation, which is open elsewhere
        client.close()
        assert db.boundaries.recent(session_id) == []
        quit_chat(child)
        wait_until(lambda: bool(db.boundaries.recent(session_id)))
        assert [event.kind for event in db.boundaries.recent(session_id)] == ["shutdown"]


def test_a_visitor_that_writes_ends_the_conversation_once(
    hermes_home: Path, visited: list[str]
) -> None:
    client = DaemonClient()
    client.open("session.resume", session_id="undone")
    client.call("prompt.submit", text="again")
    client.wait_for("message.complete")
    client.call("session.close")
    client.close()
    with SessionDB() as db:
        kinds = [event.kind for event in reversed(db.boundaries.recent("undone"))]
    assert kinds == ["shutdown", "resume", "shutdown"]


def test_commands_that_change_nothing_write_nothing(hermes_home: Path, visited: list[str]) -> None:
    imported = next(name for name in visited if name.startswith("claude-code-"))
    before = rows(hermes_home)
    for session_id in (imported, "compacted", "open"):
        client = DaemonClient()
        client.open("session.resume", session_id=session_id)
        assert client.call("session.redo")["restored"] == 0
        client.call("session.close")
        client.close()
    assert rows(hermes_home) == before


def test_a_message_continues_what_was_shown_not_another_copy(
    hermes_home: Path, visited: list[str]
) -> None:
    imported = next(name for name in visited if name.startswith("claude-code-"))
    client = DaemonClient()
    client.open("session.resume", session_id=imported)
    client.call("session.undo")  # in a copy of its own
    client.call("session.close")
    client.live = ""
    client.open("session.resume", session_id=imported)
    client.call("prompt.submit", text="and now?")
    client.wait_for("message.complete")
    history = [message["content"] for message in client.call("session.history")["messages"]]
    client.close()
    assert history[:3] == ["imported", "Yes.", "and now?"]
