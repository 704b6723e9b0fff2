"""Files mentioned in prompts, `!command`, `#text`, pictures, and what fills the context."""

from __future__ import annotations

import base64
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.events import Attached, Notice
from hermes_agent.providers.openai_compatible import wire_message
from hermes_agent.providers.rules import UNKNOWN
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_conversation import attachments, slash_commands
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.attachments import MentionReader, with_attachments
from hermes_conversation.conversation import Conversation
from hermes_conversation.file_index import FileIndex
from hermes_conversation.input_lines import memory_note, run_shell_line, shell_command
from hermes_conversation.slash_commands import Surface
from hermes_conversation.slash_output import code_blocks, context_rows
from hermes_conversation.tool_results import report_of
from hermes_core import clipboard
from hermes_core.errors import UsageError
from hermes_core.roles import Role
from hermes_state import SessionDB
from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def read(prompt: str, folder: Path, characters: int = 10_000) -> Any:
    return MentionReader(folder, lambda path: path.name == "secret", characters).read(prompt)


@pytest.fixture
def start(hermes_home: Path, tmp_path: Path) -> Iterator[Any]:
    """Starts a conversation with a scripted model in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    with model_servers() as serve, SessionDB() as db:
        started: list[Conversation] = []

        def begin(steps: str = "[{say: Yes.}]", **options: Any) -> Conversation:
            server = serve(steps)
            options = {"cwd": folder, "model": model_argument(server), **options}
            conversation = Conversation(
                db, NonInteractivePrompter(), ConversationOptions(**options)
            )
            started.append(conversation)
            return conversation

        yield begin
        for conversation in started:
            conversation.stop()


def test_a_mentioned_file_is_attached_to_the_stored_message(start: Any) -> None:
    conversation = start()
    folder = conversation.agent.cwd
    (folder / "a.py").write_text("print(1)\nprint(2)\n")
    events = list(conversation.send("what does @a.py do?"))
    assert Attached(("file a.py, 2 lines",)) in events
    (prompt,) = conversation.prompts()
    assert prompt.text == "what does @a.py do?"
    assert prompt.content[1]["text"] == "[Attached file a.py, 2 lines]\nprint(1)\nprint(2)\n"


def test_mentions_are_read_as_people_write_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.py", "b c.txt", "sub/d.md"):
        (tmp_path / name).write_text(name)
    prompt = (
        'See @a.py, (not mail@a.py) @"b c.txt" and @sub/d.md. Also @sub/ but not @sub or @nope.'
    )
    labels = [item.label for item in read(prompt, tmp_path).texts]
    assert labels == [
        "file a.py, 1 line",
        "file b c.txt, 1 line",
        "file sub/d.md, 1 line",
        "folder sub/, 1 item",
    ]


def test_a_long_file_is_cut_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("x" * 5_000)
    (tmp_path / "next.txt").write_text("y")
    found = read("@long.txt @next.txt", tmp_path, 1_000)
    assert len(found.texts) == 1
    assert "cut after 1,000 characters" in found.texts[0].text
    assert "its first 1,000 characters are attached" in found.notices[0]
    assert "@next.txt is not attached" in found.notices[1]


def test_pictures_binaries_and_protected_files(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(PIXEL)
    (tmp_path / "empty.png").touch()
    (tmp_path / "half.png").write_bytes(PIXEL[:40])
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    (tmp_path / "secret").write_text("key")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    found = read("@p.png @empty.png @half.png @data.bin @secret @link", tmp_path)
    assert [picture.name for picture in found.pictures] == ["p.png"]
    assert found.texts == ()
    expected = ("empty (0 bytes)", "not a readable image", "binary", "protected", "protected")
    assert len(found.notices) == len(expected)
    for notice, part in zip(found.notices, expected, strict=True):
        assert part in notice


def test_credentials_are_not_attached(start: Any) -> None:
    conversation = start()
    key = conversation.agent.cwd / "key"
    home = Path.home()
    (home / ".ssh").mkdir(parents=True, exist_ok=True)
    (home / ".ssh" / "id_ed25519").write_text("private")
    key.symlink_to(home / ".ssh" / "id_ed25519")
    events = list(conversation.send("look at @key and @~/.ssh/id_ed25519"))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert sum("protected file" in notice for notice in notices) == 2
    assert conversation.prompts()[0].content == "look at @key and @~/.ssh/id_ed25519"


def test_a_member_mentions_files_of_the_own_folder_only(start: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("the owner's")
    conversation = start(role=Role.MEMBER, person="ann", cwd=None)
    (conversation.agent.cwd / "own.txt").write_text("hers")
    events = list(conversation.send(f"@own.txt @{outside}"))
    assert Attached(("file own.txt, 1 line",)) in events
    guest = start(role=Role.GUEST, cwd=None)
    (guest.agent.cwd / "own.txt").write_text("of all guests")
    assert not [event for event in guest.send("@own.txt") if isinstance(event, Attached)]


def test_the_model_gets_texts_as_one_text() -> None:
    content = with_attachments("look", [attachments.AttachedText("file a, 1 line", "A")], [])
    sent = wire_message({"role": "user", "content": content}, UNKNOWN)
    assert sent["content"] == "look\n\n[Attached file a, 1 line]\nA"


def test_ignored_files_are_not_offered(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n")
    (tmp_path / "build").mkdir()
    for name in ("main.py", "main.log", "build/main.o", "readme.md"):
        (tmp_path / name).touch()
    assert FileIndex(tmp_path).search("main") == ["main.py"]
    assert FileIndex(tmp_path).search("rdm") == ["readme.md"]


def test_a_program_of_the_project_neither_lists_files_nor_gets_copied_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH begins with a folder that commands can write, as in an activated environment."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("git", "rg", "xclip", "wl-copy", "xsel", "pbcopy", "bash"):
        (programs / name).write_text(f"#!/bin/sh\n: > {tmp_path}/ran-{name}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-9")
    (tmp_path / "main.py").touch()
    assert FileIndex(tmp_path).search("main") == ["main.py"]
    clipboard.copy_by_program("text")
    jobs = Jobs()
    jobs.leave(jobs.start("true", tmp_path))
    jobs.close()
    assert list(tmp_path.glob("ran-*")) == []


def test_a_search_in_a_hundred_thousand_files_lets_other_threads_run(tmp_path: Path) -> None:
    index = FileIndex(tmp_path)
    index._paths = [f"package_{n % 300}/module_{n}.py" for n in range(100_000)]
    index._read_at = float("inf")
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(index.search("mdl99999")))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        thread.join(0.001)
    assert found == [["package_99/module_99999.py"]]
    assert turns > 1


def test_paths_to_elsewhere_are_listed(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there.txt").touch()
    assert FileIndex(tmp_path / "here").search("../the") == ["../there/", "../there.txt"]


def test_the_output_of_a_shell_line_is_part_of_the_next_message(start: Any) -> None:
    conversation = start("[{say: I see.}, {say: Nothing.}]")
    output = conversation.run_shell("echo found; exit 3")
    assert (output.text, output.code) == ("found", 3)
    list(conversation.send("what happened?"))
    list(conversation.send("and now?"))
    first, second = conversation.prompts()
    assert first.content[1]["text"] == (
        "[Attached output of the user's command `echo found; exit 3`, exit code 3]\nfound"
    )
    assert second.content == "and now?"


def test_a_long_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    output = run_shell_line("seq 100000", tmp_path)
    assert "characters cut" in output.text
    assert output.text.endswith("100000")
    assert len(output.text) < 21_000


def test_which_lines_are_commands_and_notes() -> None:
    assert [shell_command(line) for line in ("!ls -l", "! ls", "ls!", "!")] == [
        "ls -l",
        "ls",
        "",
        "",
    ]
    notes = [
        memory_note(line) for line in ("#use tabs", "# use tabs", "## Heading", "# A\ntext", "#")
    ]
    assert notes == ["use tabs", "use tabs", "", "", ""]


def test_a_note_is_added_to_the_memory(start: Any) -> None:
    conversation = start()
    path = conversation.remember("deploy with make release")
    assert "MEMORY.md" in path
    assert conversation.memory.entries("memory") == ["deploy with make release"]
    with pytest.raises(UsageError, match="is the limit"):
        conversation.remember("x" * 5_000)


def test_facts_are_explained_and_rejected_in_a_conversation(start: Any) -> None:
    conversation = start()

    def command(line: str) -> str:
        return slash_commands.run(conversation, line, Surface.TERMINAL).text

    conversation.remember("deploy with make release")
    assert "   1  deploy with make release" in command("/memory")
    assert "You added it." in command("/memory why 1")
    assert "   1  deploy" in command("/memory search deploying")
    assert "Pinned: deploy" in command("/memory pin 1")
    assert "Rejected: deploy" in command("/memory reject 1")
    assert conversation.memory.entries("memory") == []
    assert "active: deploy" in command("/memory undo")
    for line in ("/memory why", "/memory why 9", "/memory burn 1"):
        with pytest.raises(UsageError):
            command(line)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PIXEL, "image/png"),
        (b"GIF89a" + b"\0" * 20 + b";", "image/gif"),
        (b"\xff\xd8\xff" + b"\0" * 20 + b"\xff\xd9", "image/jpeg"),
        (b"RIFF\x0c\0\0\0WEBPVP8 \0\0\0\0", "image/webp"),
        (b"RIFF\xff\0\0\0WEBPVP8 ", ""),
        (b"", ""),
        (PIXEL[:-12], ""),
        (b"<svg/>", ""),
    ],
)
def test_the_type_of_a_picture_is_read_from_its_content(data: bytes, kind: str) -> None:
    assert attachments.image_type(data) == kind


def test_the_context_report_counts_every_part(start: Any) -> None:
    conversation = start("[{say: A long answer.}]")
    (conversation.agent.cwd / "AGENTS.md").write_text("# Rules\n" + "Use tabs. " * 40)
    conversation.remember("the pump runs at night")
    list(conversation.send("hello"))
    tokens = {row.name: row.tokens for row in context_rows(conversation.agent)}
    assert tokens["project files"] >= 100
    assert tokens["tools"] > tokens["memory"] > 0
    assert tokens["messages"] > 0
    text = slash_commands.run(conversation, "/context", Surface.TERMINAL).text
    assert text.splitlines()[0].endswith("░")
    for name in ("system prompt", "tools", "memory", "project files", "messages", "free"):
        assert name in text


def test_code_blocks_and_the_last_answer_can_be_copied(start: Any) -> None:
    answer = "Run:\n\n```sh\nmake\n```\n\nthen\n\n~~~~\nls\n~~~~\n"
    assert code_blocks(answer) == ["make", "ls"]
    conversation = start(f"[{{say: {answer!r}}}]".replace("'", '"'))
    with pytest.raises(UsageError, match="No answer"):
        slash_commands.run(conversation, "/copy", Surface.TERMINAL)
    list(conversation.send("how?"))
    assert slash_commands.run(conversation, "/copy", Surface.TERMINAL).copy == answer.strip()
    assert slash_commands.run(conversation, "/copy 2", Surface.TERMINAL).copy == "ls"
    with pytest.raises(UsageError, match="2 code blocks"):
        slash_commands.run(conversation, "/copy 3", Surface.TERMINAL)


def test_init_asks_the_agent_to_write_the_file(start: Any) -> None:
    assert "AGENTS.md" in slash_commands.run(start(), "/init", Surface.TERMINAL).say


def test_the_report_of_a_tool_result() -> None:
    failed = report_of('{"output": "a\\nb", "exit_code": 3, "error": null}')
    assert (failed.is_failed, failed.status, failed.lines) == (True, "exit code 3", ("a", "b"))
    assert failed.duration(3.42) == "3.4 s"
    denied = report_of('{"error": "The user denied this. Do not try it again in another way."}')
    assert (denied.status, denied.duration(3.4), denied.lines) == ("denied", "", ())
    changed = report_of('{"diff": "-a\\n+b", "replaced": 1, "error": null}')
    assert (changed.is_failed, changed.diff) == (False, "-a\n+b")
    assert report_of("plain").lines == ("plain",)
