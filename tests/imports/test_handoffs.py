"""Conversations that are handed to other agents, and what comes back by an import."""

from __future__ import annotations

import json
import sqlite3
import stat
from typing import TYPE_CHECKING, Any

import pytest

from hermes_conversation.handoff import AgentHandoff, hand_to_agent
from hermes_core.errors import UsageError
from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry
from hermes_import.writers.conversation import read_conversation
from hermes_import.writers.writer import WRITERS
from support.claude_files import ClaudeFile
from support.handed_conversations import SECRET, SESSION, START, call, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

LINE_FILES = ("claude-code", "codex", "pi")
OPENCODE_TABLES = """
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,
        model TEXT, time_created INTEGER, time_updated INTEGER, time_archived INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
        time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
        time_created INTEGER, time_updated INTEGER, data TEXT);
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "somebody"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


class OtherAgent:
    """The other agent: continues a session as its program does."""

    def __init__(self, db: SessionDB, name: str, home: Path) -> None:
        self._db = db
        self._name = name
        self._home = home

    @property
    def root(self) -> Path:
        return {
            "claude-code": self._home / ".claude",
            "codex": self._home / ".codex",
            "pi": self._home / ".pi" / "agent",
            "opencode": self._home / ".local" / "share" / "opencode",
        }[self._name]

    def accept(self, handoff: AgentHandoff) -> None:
        """Do what the import command does, for the agent that has one."""
        if self._name == "opencode":
            self._import(json.loads(handoff.path.read_text("utf-8")))

    def add_turn(self, handoff: AgentHandoff, number: int = 1) -> None:
        """Add a prompt and its answer."""
        at = START + 3600 + number * 60
        if self._name == "claude-code":
            folder = handoff.path.parent.name.replace("-", "/")
            file = ClaudeFile(self._home, handoff.native_id, folder, at)
            target = handoff.path.open("a", encoding="utf-8")
            with target:
                for record in (file.prompt(f"And {number}?"), *file.answer(f"It is {number}.")):
                    target.write(json.dumps(record) + "\n")
        elif self._name == "opencode":
            self._add_to_database(handoff, number, int(at * 1000))
        else:
            lines = _codex_turn if self._name == "codex" else _pi_turn
            with handoff.path.open("a", encoding="utf-8") as file_:
                file_.writelines(json.dumps(each) + "\n" for each in lines(at, number))

    def imported(self) -> SourceReport:
        """The report of an import."""
        found = SourceRegistry().found_at(self._name, self.root)
        return AgentImport(self._db, found.source).run(found.units())

    def _database(self) -> sqlite3.Connection:
        self.root.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.root / "opencode.db")
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.executescript(OPENCODE_TABLES)
        return database

    def _import(self, document: dict[str, Any]) -> None:
        info = document["info"]
        database = self._database()
        times = (info["time"]["created"], info["time"]["updated"])
        session = (info["id"], None, info["directory"], info["title"], None, *times, None)
        database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)", session)
        for message in document["messages"]:
            self._insert(database, info["id"], message["info"], message["parts"])
        database.commit()
        database.close()

    def _insert(
        self, database: sqlite3.Connection, session: str, info: dict[str, Any], parts: list[Any]
    ) -> None:
        at = info["time"]["created"]
        data = json.dumps({key: info[key] for key in info if key not in ("id", "sessionID")})
        row = (info["id"], session, at, at, data)
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
        for part in parts:
            row = (part["id"], info["id"], session, at, at, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)

    def _add_to_database(self, handoff: AgentHandoff, number: int, at: int) -> None:
        database = self._database()
        session = handoff.resume_command[-1]
        tokens = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        for role, text in (("user", f"And {number}?"), ("assistant", f"It is {number}.")):
            info = {"id": f"msg_{at}{role}", "role": role, "time": {"created": at, "completed": at},
                    "modelID": "m", "finish": "stop", "tokens": tokens}  # fmt: skip
            part = {"id": f"prt_{at}{role}", "type": "text", "text": text}
            self._insert(database, session, info, [part])
            at += 1
        database.execute("UPDATE session SET time_updated = ? WHERE id = ?", (at, session))
        database.commit()
        database.close()


def _codex_turn(at: float, number: int) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": f"It is {number}."}]
    usage = {"input_tokens": 10, "output_tokens": 5}
    payloads: list[tuple[str, dict[str, Any]]] = [
        ("event_msg", {"type": "task_started"}),
        ("event_msg", {"type": "user_message", "message": f"And {number}?"}),
        ("response_item", {"type": "message", "role": "assistant", "content": content}),
        ("token_usage_record", {"response_id": f"r{number}", "usage": usage}),
    ]
    return [
        {"timestamp": at, "ordinal": 1000 * number + place, "type": kind, "payload": payload}
        for place, (kind, payload) in enumerate(payloads)
    ]


def _pi_turn(at: float, number: int) -> list[dict[str, Any]]:
    usage = {"input": 10, "output": 5}
    answer = {"role": "assistant", "model": "m", "usage": usage, "stopReason": "stop",
              "content": [{"type": "text", "text": f"It is {number}."}]}  # fmt: skip
    prompt = {"role": "user", "content": f"And {number}?"}
    return [
        {"type": "message", "id": f"{number}{place}", "timestamp": at, "message": message}
        for place, message in enumerate((prompt, answer))
    ]


def contents(db: SessionDB, session_id: str) -> list[str]:
    return [str(row["content"]) for row in db.get_messages(session_id)]


@pytest.mark.parametrize("agent", WRITERS)
def test_only_what_the_other_agent_adds_is_new(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    before = write_conversation(db, tmp_path)
    stored = db.statistics.stats()
    handoff = hand_to_agent(db, SESSION, agent)
    other = OtherAgent(db, agent, home)
    other.accept(handoff)
    report = other.imported()  # which adds no conversation: the other agent has added nothing
    assert (report.new, report.messages, report.failures) == (0, 0, {})
    assert db.statistics.stats().sessions == stored.sessions
    for number in (1, 2):
        other.add_turn(handoff, number)
        report = other.imported()
        assert (report.messages, report.failures, dict(report.unknown)) == (2, {}, {})
    assert other.imported().messages == 0
    [returned] = [each.session_id for each in db.imports.all()]
    assert contents(db, returned) == [*before, "And 1?", "It is 1.", "And 2?", "It is 2."]
    rows = db.get_messages(returned)
    assert [row["tool_calls"] for row in rows[: len(before)]] == [
        row["tool_calls"] for row in db.get_messages(SESSION)
    ]
    session = db.sessions.find(returned)
    assert session is not None
    assert session.parent_session_id == SESSION
    after = db.statistics.stats()
    assert after.messages == stored.messages + 4
    assert after.tool_calls == stored.tool_calls
    assert (after.input_tokens, after.output_tokens) == (20, 10)


@pytest.mark.parametrize("agent", LINE_FILES)
def test_a_long_conversation_is_recognized_as_a_whole(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    db.create_session(SESSION, "cli", cwd=str(tmp_path))
    for number in range(700):
        db.append_message(SESSION, "user", f"question {number}", timestamp=START + number)
        db.append_message(SESSION, "assistant", f"answer {number}", timestamp=START + number)
    handoff = hand_to_agent(db, SESSION, agent)
    other = OtherAgent(db, agent, home)
    assert other.imported().new == 0
    other.add_turn(handoff)
    report = other.imported()
    assert (report.new, report.messages, report.copies) == (1, 2, 1400)
    assert db.imports.end_idle(START * 2) == []


@pytest.mark.parametrize("agent", WRITERS)
def test_the_same_conversation_is_written_once(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    write_conversation(db, tmp_path)
    handoff = hand_to_agent(db, SESSION, agent)
    content = handoff.path.read_bytes()
    assert stat.S_IMODE(handoff.path.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="was handed off already") as refused:
        hand_to_agent(db, SESSION, agent)
    assert handoff.native_id.replace("-", "") in str(refused.value).replace("-", "")
    assert handoff.path.read_bytes() == content
    db.append_message(SESSION, "user", "One more.", timestamp=START + 100)
    longer = hand_to_agent(db, SESSION, agent)
    assert longer.path != handoff.path
    assert handoff.path.read_bytes() == content
    assert not list(handoff.path.parent.glob("*.tmp"))


@pytest.mark.parametrize("agent", WRITERS)
def test_secrets_are_redacted_on_request(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    write_conversation(db, tmp_path)
    plain = hand_to_agent(db, SESSION, agent).path.read_text("utf-8")
    redacted = hand_to_agent(db, SESSION, agent, is_redacted=True).path.read_text("utf-8")
    assert SECRET in plain
    assert SECRET not in redacted
    assert "[redacted:api-key]" in redacted


@pytest.mark.parametrize("agent", WRITERS)
def test_a_call_without_a_result_gets_one_that_is_not_imported(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    db.create_session(SESSION, "cli", cwd=str(tmp_path))
    calls: Any = [call("call_1", "terminal", command="sleep 100")]
    db.append_message(SESSION, "user", "Sleep.", timestamp=START)
    db.append_message(SESSION, "assistant", "", tool_calls=calls, timestamp=START + 1)
    handoff = hand_to_agent(db, SESSION, agent)
    assert "No result: the turn was interrupted." in handoff.path.read_text("utf-8")
    other = OtherAgent(db, agent, home)
    other.accept(handoff)
    assert other.imported().new == 0
    other.add_turn(handoff)
    assert other.imported().messages == 2
    [returned] = [each.session_id for each in db.imports.all()]
    assert contents(db, returned) == ["Sleep.", "", "And 1?", "It is 1."]


@pytest.mark.parametrize("agent", WRITERS)
def test_branches_and_rows_without_an_identity_are_recognized(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    write_conversation(db, tmp_path)
    db.engine.write(lambda tx: tx.execute("DELETE FROM hermes_message").rowcount)
    branch = db.edits.branch(SESSION)
    db.append_message(branch, "user", "In the branch.", timestamp=START + 50)
    handoff = hand_to_agent(db, branch, agent)
    other = OtherAgent(db, agent, home)
    other.accept(handoff)
    other.add_turn(handoff)
    report = other.imported()
    assert (report.messages, report.copies) == (2, 11)
    [returned] = [each.session_id for each in db.imports.all()]
    assert contents(db, returned)[:11] == contents(db, branch)


@pytest.mark.parametrize("agent", WRITERS)
def test_the_other_agent_gets_what_the_model_sees(
    agent: str, db: SessionDB, home: Path, tmp_path: Path
) -> None:
    write_conversation(db, tmp_path)
    kept = db.messages.get_messages_as_conversation(SESSION)[-1:]
    summary: Any = {"role": "user", "content": "A summary of it.", "timestamp": START + 15}
    db.edits.archive_and_compact(SESSION, [summary, *kept])
    db.append_message(SESSION, "user", "Undone.", timestamp=START + 20)
    db.edits.undo(SESSION)
    db.append_message(SESSION, "user", "After it.", timestamp=START + 30)
    live = contents(db, SESSION)
    assert live == ["A summary of it.", "Noted the walrus. 👋🏽", "After it."]
    handoff = hand_to_agent(db, SESSION, agent)
    text = handoff.path.read_text("utf-8")
    assert all(each in text for each in live)
    assert "How many words" not in text
    assert "Undone." not in text
    other = OtherAgent(db, agent, home)
    other.accept(handoff)
    assert other.imported().new == 0
    other.add_turn(handoff)
    report = other.imported()
    assert (report.messages, report.copies) == (2, 3)
    [returned] = [each.session_id for each in db.imports.all()]
    assert contents(db, returned) == [*live, "And 1?", "It is 1."]


def test_a_purged_original_is_not_counted_again(db: SessionDB, home: Path, tmp_path: Path) -> None:
    write_conversation(db, tmp_path)
    handoff = hand_to_agent(db, SESSION, "claude-code")
    db.trash.delete_session(SESSION)
    assert db.trash.purge(SESSION)
    other = OtherAgent(db, "claude-code", home)
    other.add_turn(handoff)
    assert other.imported().messages == 2


def test_a_session_of_the_agent_itself_continues_there(
    db: SessionDB, home: Path, import_from: Callable[[str, Path], SourceReport]
) -> None:
    file = ClaudeFile(home).exchange("one", "first")
    import_from("claude-code", home)
    before = sorted(home.rglob("*.jsonl"))
    handoff = hand_to_agent(db, f"claude-code-{file.session_id}", "claude-code")
    assert "nothing was written" in handoff.text
    assert handoff.resume_command == ["claude", "--resume", file.session_id]
    assert sorted(home.rglob("*.jsonl")) == before
    other = hand_to_agent(db, f"claude-code-{file.session_id}", "codex")
    assert other.is_new
    assert "first" in other.path.read_text("utf-8")


def test_a_conversation_without_messages_is_refused(db: SessionDB, home: Path) -> None:
    db.create_session(SESSION, "cli")
    for agent in WRITERS:
        with pytest.raises(UsageError, match="has no messages to hand off"):
            hand_to_agent(db, SESSION, agent)
    assert not list(home.rglob("*.jsonl"))
    db.append_message(SESSION, "tool", "a result without a call", tool_call_id="lost")
    for agent in WRITERS:
        with pytest.raises(UsageError, match="has no messages to hand off"):
            hand_to_agent(db, SESSION, agent)


def test_parallel_calls_with_the_same_id_keep_their_results(db: SessionDB, home: Path) -> None:
    db.create_session(SESSION, "cli")
    db.append_message(SESSION, "user", "Look at both.")
    calls = [call("", "look", at="pelican"), call("", "look", at="walrus")]
    db.append_message(SESSION, "assistant", "", tool_calls=calls)
    for text in ("it flies", "it swims"):
        db.append_message(SESSION, "tool", text, tool_call_id="")
    _, asked, *results = read_conversation(db, SESSION, "pi").messages
    assert [each.arguments["at"] for each in asked.calls] == ["pelican", "walrus"]
    assert [(each.call_id, each.text) for each in results] == [
        (asked.calls[0].call_id, "it flies"),
        (asked.calls[1].call_id, "it swims"),
    ]


def test_tools_have_the_names_of_the_other_agent(db: SessionDB, home: Path, tmp_path: Path) -> None:
    write_conversation(db, tmp_path)
    expected = {
        "claude-code": ['"Bash"', '"Read"', '"file_path"'],
        "codex": ['"exec_command"', '"CommandExecution"', '"exit_code":3', '"McpToolCall"'],
        "opencode": ['"bash"', '"filePath"', '"exit": 3'],
        "pi": ['"bash"', '"read"', "Command exited with code 3"],
    }
    for agent, texts in expected.items():
        written = hand_to_agent(db, SESSION, agent).path.read_text("utf-8")
        for text in [*texts, "memory", "灯塔", "👋🏽"]:
            assert text in written, (agent, text)
        assert "Hm." not in written  # its signature belongs to the model that thought it
