"""What came of tool calls of all agents: failures with what then worked, reverted changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.calls.commands import find_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state.calls.outcomes import Outcome

pytestmark = pytest.mark.engines

FOLDER = "/home/ada/blog"
ERROR = "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve the tree of blog@1.0.3"


@pytest.fixture
def db(db_path: Path) -> Iterator[SessionDB]:
    with SessionDB(db_path) as db:
        yield db


class Talk:
    """A conversation of an agent with calls."""

    def __init__(self, db: SessionDB, name: str, folder: str = FOLDER) -> None:
        self.db, self.name, self.count = db, name, 0
        db.create_session(name, "cli", cwd=folder)
        self.prompt("start")

    def prompt(self, text: str) -> int:
        return int(self.db.append_message(self.name, "user", text))

    def call(self, tool: str, arguments: dict[str, Any], result: str) -> int:
        self.count += 1
        call_id = f"{self.name}-{self.count}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": call_id, "type": "function", "function": function}
        row = self.db.append_message(self.name, "assistant", "", tool_calls=[call])
        self.db.append_message(self.name, "tool", result, tool_call_id=call_id, tool_name=tool)
        return int(row)

    def run(self, command: str, code: int = 0, output: str = "") -> int:
        result = json.dumps({"output": output, "exit_code": code, "error": None})
        return self.call("terminal", {"command": command}, result)

    def fixes(self) -> list[str]:
        self.db.calls.fill()
        return [row.fix for row in found(self.db) if row.session_id == self.name]


def found(db: SessionDB, output: str = ERROR) -> list[Outcome]:
    error = find_error(output)
    assert error is not None
    return db.calls.fixes(error.fingerprint, 50)


# Results as the agents write them; the imports keep the text.
FAILURES = {
    "hermes": ("terminal", "command", '{{"output": {json}, "exit_code": 1, "error": null}}'),
    "claude-code": ("Bash", "command", '{{"error":{claude}}}'),
    "codex": (
        "exec_command", "cmd",
        '{{"output":{codex},"exit_code":1}}',
    ),
    "copilot": ("bash", "command", '{{"output":{copilot},"exit_code":1}}'),
    "gemini": (
        "run_shell_command", "command",
        "<untrusted_context>\nOutput: {text}\nExit Code: 1\nProcess Group PGID: 1\n"
        "</untrusted_context>",
    ),
    "opencode": ("bash", "command", '{{"output":{json},"exit_code":1}}'),
    "openclaw": ("exec", "command", '{{"output":{openclaw},"exit_code":1}}'),
    "pi": ("bash", "command", '{{"error":{openclaw}}}'),
    "qwen": ("run_shell_command", "command", '{{"output":{qwen},"exit_code":1}}'),
}  # fmt: skip


@pytest.mark.parametrize("agent", FAILURES)
def test_the_failure_of_each_agent_has_the_same_fingerprint(db: SessionDB, agent: str) -> None:
    tool, key, form = FAILURES[agent]
    codex = f"Chunk ID: 0f\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n{ERROR}\n"
    qwen = f"Command: npm ci\nDirectory: (root)\nOutput: {ERROR}\nError: (none)\nExit Code: 1"
    result = form.format(
        text=ERROR,
        json=json.dumps(ERROR),
        claude=json.dumps(f"Exit code 1\n{ERROR}"),
        codex=json.dumps(codex),
        copilot=json.dumps(f"{ERROR}\n<shellId: 0 completed with exit code 1>"),
        openclaw=json.dumps(f"{ERROR}\n\n(Command exited with code 1)"),
        qwen=json.dumps(qwen),
    )
    talk = Talk(db, agent)
    talk.call(tool, {key: "npm ci"}, result)
    works = talk.run("npm ci --legacy-peer-deps")
    assert talk.fixes() == ["`npm ci --legacy-peer-deps`"]
    (row,) = found(db)
    assert (row.folder, row.exit_code, row.fix_id, row.error) == (
        FOLDER, 1, works, ERROR.splitlines()[0],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("later", "fix"),
    [
        ([("npm ci", 0)], "the same command again"),
        ([("npm install -g npm@11", 0), ("npm ci", 0)], "`npm install -g npm@11`"),
        ([("git add .", 0), ("ls", 0), ("rm -r node_modules", 0), ("npm ci", 0)],
         "`rm -r node_modules`"),
        ([("cd /home/ada/blog && npm ci --force 2>&1", 0)], "`npm ci --force`"),
        ([("npm ci --verbose", 0)], "the same command again"),
        ([("yarn install", 0)], None),  # another program
        ([("npm ci --help", 0)], None),
        ([("npm ci --force 2>&1 | tail -3", 0)], "`npm ci --force`"),
        ([("npm ci --force || true", 0)], None),  # the exit code proves nothing
        ([("npm ci; echo done", 0)], None),
        ([("cd /home/ada/other && npm ci", 0)], None),  # another folder
        ([("npm test", 0)], None),
        ([("npm ci --force", 1)], None),
    ],
)  # fmt: skip
def test_a_fix_is_what_made_the_same_command_work(
    db: SessionDB, later: list[tuple[str, int]], fix: str | None
) -> None:
    talk = Talk(db, "one")
    talk.run("npm ci", 1, ERROR)
    for command, code in later:
        talk.run(command, code, "another error: no network" if code else "")
    assert talk.fixes() == ([] if fix is None else [fix])


def test_a_pipe_that_hides_the_same_error_is_no_fix(db: SessionDB) -> None:
    talk = Talk(db, "one")
    talk.run("npm ci", 1, ERROR)
    talk.run("npm ci --force 2>&1 | tail -3", 0, ERROR)
    assert talk.fixes() == []


def test_tests_of_one_file_do_not_fix_the_failure_of_another(db: SessionDB) -> None:
    output = "FAILED tests/test_a.py::test_sum - assert 3 == 4"
    talk = Talk(db, "one")
    talk.run("pytest", 1, output)
    talk.run("pytest tests/test_b.py")
    talk.run("pytest -k other")
    db.calls.fill()
    assert found(db, output) == []
    talk.call("patch", {"path": "sum.py", "old_string": "3", "new_string": "4"}, '{"error": null}')
    talk.run("pytest")
    db.calls.fill_session("one")  # what follows is read later
    assert [row.fix for row in found(db, output)] == ["an edit of `sum.py`"]


def test_after_a_prompt_a_command_that_works_again_proves_nothing(db: SessionDB) -> None:
    talk = Talk(db, "one")
    talk.run("npm ci", 1, ERROR)
    talk.prompt("I have repaired it, try again")
    talk.run("npm ci")
    assert talk.fixes() == []


def test_the_changes_before_the_error_changed_are_its_fix(db: SessionDB) -> None:
    talk = Talk(db, "one")
    talk.run("npm ci", 1, ERROR)
    talk.run("npm dedupe")
    talk.run("npm ci", 1, "npm error EACCES: permission denied, mkdir node_modules")
    talk.run("chmod +w .")
    talk.run("npm ci")
    assert talk.fixes() == ["`npm dedupe`"]


def test_copies_of_a_failure_do_not_count(db: SessionDB) -> None:
    talk = Talk(db, "one")
    talk.run("npm ci", 1, ERROR)
    talk.run("npm ci --force")
    db.edits.branch("one", "two")
    db.edits.archive_and_compact("one", [{"role": "user", "content": "summary"}])
    db.calls.fill()
    assert [row.session_id for row in found(db)] == ["one"]


def test_paths_numbers_hashes_and_times_do_not_matter_but_names_do() -> None:
    def fingerprint(text: str) -> str:
        error = find_error(text)
        assert error is not None
        return error.fingerprint

    one = "2026-05-03 10:11:12 error: /home/ada/a/x.py:12: cannot load 5f3a9c1d2e at 0x7f12 in 3.2s"
    two = "2026-11-19 23:00:01 error: /srv/b/x.py:99: cannot load 99aabb1c2d at 0xffff in 120ms"
    assert fingerprint(one) == fingerprint(two)
    assert fingerprint(one) != fingerprint(two.replace("x.py", "y.py"))
    assert fingerprint("\x1b[31mError: no module 'a'\x1b[0m") == fingerprint("Error: no module 'a'")
    assert find_error("make: *** [Makefile:12: all] Error 2") is None
    assert find_error("3 failed, 12 passed in 4.2s") is None


def test_an_exception_is_another_one_where_another_function_raises_it() -> None:
    def fingerprint(function: str, exception: str) -> str:
        error = find_error(
            f'Traceback (most recent call last):\n  File "/home/x/a.py", line 7, in {function}\n'
            f"    return 1\n{exception}\n"
        )
        assert error is not None
        return error.fingerprint

    common, module = "IndexError: list index out of range", "ImportError: No module named 'yaml'"
    assert fingerprint("load", common) != fingerprint("save", common)
    assert fingerprint("load", module) == fingerprint("save", module)


def change(talk: Talk, old: str, new: str) -> int:
    arguments = {"path": "src/app.py", "old_string": old, "new_string": new}
    return talk.call("patch", arguments, '{"error": null}')


def test_a_change_that_another_conversation_reverts_is_found_in_any_order(db: SessionDB) -> None:
    first, second = Talk(db, "first"), Talk(db, "second")
    change(first, "read(binary)", "read(text)")
    why = second.prompt("The line ends are lost now, undo that")
    reverting = change(second, "read(text)", "read(binary)")
    db.calls.fill()
    (row,) = db.calls.reverted_changes(f"{FOLDER}/src/app.py", 10)
    assert (row.session_id, row.state, row.fix_id) == ("first", "reverted", reverting)
    assert db.calls.prompt_before("second", reverting) == (
        why,
        "The line ends are lost now, undo that",
    )


def test_an_attempt_of_one_turn_is_not_a_reverted_change(db: SessionDB) -> None:
    talk = Talk(db, "one")
    change(talk, "run()", "print(1)")
    change(talk, "print(1)", "run()")
    db.calls.fill()
    assert db.calls.reverted_changes(f"{FOLDER}/src/app.py", 10) == []


def test_a_change_whose_turn_was_undone_is_found(db: SessionDB) -> None:
    talk = Talk(db, "one")
    change(talk, "run()", "walk()")
    db.calls.fill()
    db.edits.undo("one")
    (row,) = db.calls.reverted_changes(f"{FOLDER}/src/app.py", 10)
    assert row.state == "kept"  # nothing else reverted it


def test_outcomes_go_with_their_conversation(db: SessionDB) -> None:
    talk = Talk(db, "one")
    talk.run("npm ci", 1, ERROR)
    talk.run("npm ci --force")
    assert talk.fixes() == ["`npm ci --force`"]
    db.trash.delete_session("one")
    assert found(db) == []
    db.trash.restore("one")
    assert len(found(db)) == 1
    db.trash.delete_session("one")
    db.trash.purge("one")
    assert db.engine.read(lambda r: r.value("SELECT count(*) FROM hermes_outcome", ())) == 0
