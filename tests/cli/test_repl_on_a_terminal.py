"""`hermes chat` on a real terminal: mentions, shell lines, memory, tool lines, completion."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hermes_agent.providers.scripted import ModelScript
from hermes_cli.commands.chat.repl import completions
from hermes_conversation.file_index import FileIndex
from hermes_core.roles import Role
from support.plain_terminal import quit_chat, start_chat, stored_messages
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

STEPS = r"""
steps:
  - calls:
      - {name: terminal, arguments: {command: "seq 5; exit 3"}}
      - {name: patch, arguments: {path: a.txt, old_string: two, new_string: three}}
  - say: Looked at it.
"""


def test_a_message_with_a_file_and_the_output_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with ScriptServer(ModelScript.parse(STEPS)) as server:
        child = start_chat(server)
        child.sendline("!echo from the shell; exit 4")
        child.expect("from the shell\r\n")
        child.expect("exit code 4")
        child.sendline("#the pump runs at night")
        child.expect(r"Remembered in\s.*MEMORY.md")
        child.sendline("look at @a.txt")
        child.expect(r"\+ output of the user's command `echo from the shell; exit 4`")
        child.expect(r"\+ file a.txt, 2 lines")
        child.expect("Looked at it.")
        shown = re.sub(r"\x1b\[[0-9;]*m|\r", "", child.before)
        assert "  ✗ terminal: exit code 3, " in shown
        assert "\n    1\n    2\n    3\n    … 2 more lines\n" in shown
        assert "  ✓ patch: " in shown
        assert "\n    -two\n    +three\n" in shown
        quit_chat(child)
    content: Any = stored_messages()[0][1]
    assert content[-1]["text"] == "[Attached file a.txt, 2 lines]\none\ntwo\n"


def test_vim_keys_edit_the_line_and_show_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_DISPLAY_VIM_KEYS", "true")
    with ScriptServer(ModelScript.parse("steps: [{say: Good.}]")) as server:
        child = start_chat(server)
        child.expect("ins")
        child.send("one two")
        child.expect("two")
        child.send("\x1b")
        child.expect("cmd")
        child.send("0dw")
        child.send("Athree")
        child.expect("ins")
        child.send("\r")
        child.expect("Good.")
        quit_chat(child)
    assert stored_messages()[0] == ("user", "twothree")


def test_commands_arguments_and_files_are_completed(tmp_path: Path) -> None:
    for name in ("watering.py", "two words.md", "tw.md", "a/zone.py", "b/zone.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    options, agent = SimpleNamespace(role=Role.OWNER), SimpleNamespace(cwd=tmp_path)
    conversation: Any = SimpleNamespace(
        file_index=FileIndex(tmp_path), options=options, agent=agent
    )

    def completed(line: str) -> list[str]:
        return list(completions(conversation, line))

    assert completed("/stat") == ["/status"]
    assert completed("/permissions p") == ["plan"]
    assert completed("see @wtr") == ["@watering.py"]
    assert completed("see @words") == ['@"two words.md"']
    assert completed("mail@wtr") == []
    # What all begin with contains the typed word: readline replaces it with that.
    assert completed("see @zon") == ["@a/zone.py"]
    assert sorted(completed("see @tw")) == ['@"tw.md"', '@"two words.md"']


def test_tab_completes_and_a_pasted_text_is_one_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "watering.md").write_text("at night\n")
    with ScriptServer(ModelScript.parse("steps: [{say: Good.}]")) as server:
        child = start_chat(server)
        child.send("/stat\t")
        child.expect("/status")
        child.send("\x15\x1b[200~one\ntwo\x1b[201~ @wat\t")
        child.expect("@watering.md")
        child.send("\r")
        child.expect("Good.")
        quit_chat(child)
    content: Any = stored_messages()[0][1]
    assert content[0]["text"].strip() == "one\ntwo @watering.md", content


def test_after_an_undo_a_path_continues_the_question_and_a_command_replaces_it() -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Good.}, {say: Better.}]")) as server:
        child = start_chat(server)
        child.sendline("read src")
        child.expect("Good.")
        child.sendline("/undo")
        child.expect("> read src")
        child.sendline("/redo")
        child.expect("Restored")
        child.sendline("/undo")
        child.expect("> read src")
        child.sendline("/main.py")
        child.expect("Better.")
        quit_chat(child)
    assert stored_messages()[-2] == ("user", "read src/main.py")


def test_a_locale_without_utf_8_does_not_refuse_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    with ScriptServer(ModelScript.parse("steps: [{say: Good.}, {say: Better.}]")) as server:
        child = start_chat(server)
        child.sendline("Grüße an Žofia")
        child.expect("Good.")
        quit_chat(child)
        assert stored_messages()[0] == ("user", "Grüße an Žofia")
        child = start_chat(server)
        child.sendline("again")
        child.expect("Better.")
        quit_chat(child)
