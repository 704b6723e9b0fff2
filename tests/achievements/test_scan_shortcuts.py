"""The shortcuts of the first scan have the results of the general code."""

from __future__ import annotations

import posixpath
from zlib import crc32

from hypothesis import example, given
from hypothesis import strategies as st

from hermes_achievements.classification import shell_commands
from hermes_achievements.classification.shell_commands import FLAT_COMMAND, command_labels
from hermes_achievements.classification.tool_kinds import extension, file_label

PIECES = [
    *("pytest", "git commit", "cd /srv", "make -j 4", "grep", "sudo", "x=1", "npm run test:unit"),
    *(" ", "  ", "\t", "&&", "||", "|", ";", " && ", " ; ", " | ", "&", "2>&1", ">&", ">", "\n"),
    *(
        "'a b'",
        '"c"',
        '"git"',
        "'",
        '"',
        '"a $(b) c"',
        "\\",
        "$(",
        ")",
        "#",
        "<<EOF",
        "{",
        "}",
        "!",
    ),
]
COMMANDS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
PATHS = st.lists(
    st.sampled_from(["a", "b.py", ".", "..", "/", "//", "\\", " ", ".x", "Makefile", "é.TAR.gz"]),
    max_size=7,
).map("".join)


def parsed_labels(command: str) -> tuple[str, ...]:
    """The labels by the parser, which knows the whole syntax."""
    parser = shell_commands._CommandParser(command)
    marks = shell_commands._exit_code_marks(parser.parts)
    parts = zip(parser.parts, marks, strict=True)
    labels = [
        label + mark for part, mark in parts if (label := shell_commands._label(part.text.split()))
    ]
    background = [shell_commands.BACKGROUND_LABEL] if parser.is_background else []
    return (*labels[: shell_commands.MAX_LABELS], *background)


@given(COMMANDS)
@example("cd /srv && pytest -q 2>&1 | tail -5; git push ;")
@example("pytest && ; ;")
def test_labels_of_a_flat_command_equal_those_of_the_parser(command: str) -> None:
    if FLAT_COMMAND.match(command):
        assert shell_commands._flat_labels(command) == parsed_labels(command)
    assert command_labels(command) == parsed_labels(command)


def test_common_commands_are_flat() -> None:
    for command in (
        "cd /srv/app && make build",
        'git commit -m "Fix: it\'s (done)" && git push',
        "grep -rn 'a|b' src 2>&1 | head -20; ls *.py > out.txt",
    ):
        assert FLAT_COMMAND.match(command)
    for command in ("make &", "echo $(ls)", "cat <<EOF", 'echo "a', "(ls)", "ls\npwd", "a # b"):
        assert not FLAT_COMMAND.match(command)


@given(PATHS)
def test_labels_of_files_equal_those_of_normalized_paths(path: str) -> None:
    text = path.strip().replace("\\", "/")
    normal = posixpath.normpath(text) if text and not text.endswith("/") else "."
    expected = (
        f"{extension(normal)}:{crc32(normal.encode()):x}" if normal not in (".", "..") else ""
    )
    assert file_label(path) == expected
