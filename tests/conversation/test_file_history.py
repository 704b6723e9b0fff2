"""Checkpoints of a conversation follow its prompts through undo, branches and compaction."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_conversation import file_commands, slash_commands
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_conversation.slash_commands import Surface
from hermes_core.errors import UsageError
from hermes_core.roles import Role
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def steps(count: int) -> str:
    """A model that writes another number into the same file, and into one of its own, each turn."""
    return "steps:\n" + "".join(
        f"- {{calls: [{{name: write_file, arguments: {{path: a, content: '{number}'}}}},"
        f" {{name: write_file, arguments: {{path: f{number}, content: x}}}}]}}\n- {{say: Done.}}\n"
        for number in range(1, count + 1)
    )


@contextmanager
def conversing(folder: Path, count: int) -> Iterator[Conversation]:
    """A conversation after some turns."""
    with ScriptServer(ModelScript.parse(steps(count))) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=folder)
        conversation = Conversation(db, FixedPrompter(), options)
        for number in range(1, count + 1):
            list(conversation.send(f"prompt {number}"))
        yield conversation
        conversation.stop()


def run(conversation: Conversation, line: str) -> str:
    return slash_commands.run(conversation, line, Surface.TERMINAL).text


def names(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_undo_of_messages_alone_says_which_files_stay(folder: Path) -> None:
    with conversing(folder, 2) as conversation:
        text = run(conversation, "/undo")
        assert "Undid 4 messages" not in text.partition("\n")[2]
        assert "Their 2 changed files stay; /checkpoints restore 2 restores them." in text
        assert names(folder) == {"a": "2", "f1": "x", "f2": "x"}
        assert "Restored 2 files: a, f2" in run(conversation, "/checkpoints restore 2")
        assert names(folder) == {"a": "1", "f1": "x"}


def test_undo_of_several_exchanges_restores_the_state_before_the_first(folder: Path) -> None:
    with conversing(folder, 3) as conversation:
        text = run(conversation, "/undo 2 both")
        assert "/checkpoints restore 4 undoes this." in text
        assert names(folder) == {"a": "1", "f1": "x"}
        assert [prompt.text for prompt in conversation.prompts()] == ["prompt 1"]
        text = run(conversation, "/redo")
        assert "Undone changes of 3 files stay undone; /checkpoints restore 4 redoes them." in text
        run(conversation, "/checkpoints restore 4")
        assert names(folder) == {"a": "3", "f1": "x", "f2": "x", "f3": "x"}
        run(conversation, "/undo files")
        assert names(folder) == {"a": "2", "f1": "x", "f2": "x"}
        assert len(conversation.prompts()) == 3


def test_a_branch_knows_what_was_changed_before_it(folder: Path) -> None:
    with conversing(folder, 2) as conversation:
        conversation.branch()
        assert conversation.files.all().numbers == (1, 2)
        assert conversation.files.of_last_prompts(1).numbers == (2,)
        assert "+2" in run(conversation, "/diff last")


def test_prompts_that_survive_a_compaction_keep_their_checkpoints(folder: Path) -> None:
    with conversing(folder, 3) as conversation:
        rows = conversation.db.get_messages_as_conversation(conversation.session_id)
        last = max(place for place, row in enumerate(rows) if row["role"] == "user")
        messages = [{"role": "user", "content": "A summary."}, *rows[last:]]
        conversation.db.archive_and_compact(conversation.session_id, messages)
        (prompt,) = conversation.prompts()
        assert conversation.files.since_prompt(prompt.message_id).numbers == (3,)
        assert conversation.files.all().numbers == (1, 2, 3)


def test_checkpoints_of_other_conversations_are_not_restored(folder: Path) -> None:
    with conversing(folder, 1) as conversation:
        conversation.new()
        assert run(conversation, "/checkpoints") == "This conversation has not changed any files."
        with pytest.raises(UsageError, match="no checkpoint 1"):
            run(conversation, "/checkpoints restore 1")
        with pytest.raises(UsageError, match="not changed any files"):
            run(conversation, "/diff")


def test_the_list_names_prompts_and_restores(folder: Path) -> None:
    with conversing(folder, 1) as conversation:
        run(conversation, "/checkpoints restore 1")
        restore, turn = run(conversation, "/checkpoints").splitlines()
        assert "2 files  prompt 1" in turn
        assert "restore of 1" in restore
        assert "cancel each other out" in run(conversation, "/diff")


def test_guests_have_no_file_commands(folder: Path) -> None:
    with conversing(folder, 1) as conversation:
        for line in ("/diff", "/checkpoints"):
            with pytest.raises(UsageError, match="not available to guests"):
                slash_commands.run(conversation, line, Surface.TERMINAL, Role.GUEST)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("3", ((3,), (), ())),
        ("3 4 'a b' c", ((3, 4), ("a b", "c"), ())),
        ("3 --force x --force 'y z'", ((3,), (), ("x", "y z"))),
    ],
)
def test_arguments_of_a_restore(words: str, expected: tuple[object, ...]) -> None:
    assert tuple(file_commands.parse_restore(words)) == expected


@pytest.mark.parametrize("words", ["", "x", "3 --force", "3 'open"])
def test_incomplete_arguments_are_explained(words: str) -> None:
    with pytest.raises(UsageError, match="/checkpoints restore NUMBER"):
        file_commands.parse_restore(words)
