"""The shortcuts of the first scan have the results of the general code."""

from __future__ import annotations

import posixpath
from typing import Any
from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_achievements.classification import outcomes, shell_commands
from hermes_achievements.classification.outcomes import SUCCESS_ENDINGS, classify_outcome
from hermes_achievements.classification.shell_commands import FLAT_COMMAND, command_labels
from hermes_achievements.classification.tool_kinds import SHELL, extension, file_label
from hermes_achievements.scan import ledger_entries
from hermes_achievements.scan.history import ScannedMessage, ScannedSession
from hermes_achievements.scan.ledger_entries import read_facts, reference_of

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
# Parts of shell results: valid JSON, and texts that only look like it.
RESULT_PIECES = [
    *(
        b'{"output": "',
        b'"',
        b'\\"',
        b"\\",
        b"a",
        b" ",
        b"\n",
        b"\\n",
        b"{",
        b"}",
        b", ",
        b": ",
        b"[",
        b"]",
    ),
    *(
        b'"exit_code": 1',
        b'"exit_code": 0',
        b'", "exit_code": 2',
        b'"error": "e"',
        b'"returncode": 3',
    ),
    *(
        b"exit code 1\n",
        b"exited with code 7",
        b"Traceback (most recent call last)",
        b"\xff",
        b"x" * 400,
    ),
    *SUCCESS_ENDINGS,
]
RESULTS = st.builds(
    lambda start, parts, end: start + b"".join(parts) + end,
    st.sampled_from([b"", b"{", b'{"output": "', b' {"output": "a', b'{"a": {"output": "x"']),
    st.lists(st.sampled_from(RESULT_PIECES), max_size=8),
    st.sampled_from([*SUCCESS_ENDINGS, *(b'"' + end for end in SUCCESS_ENDINGS), b"}", b""]),
)
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


@given(RESULTS)
@example(b'{"output": "ok", "exit_code": 0, "error": null}')
@example(b'{"output": "ok", "returncode": 2, "exit_code": 0}')
@example(b'{"output": "a\\", "exit_code": 0}')
@example(b'{\nexit code 3\n, "exit_code": 0}')
@example(b'{"output": "Traceback (most recent call last)", "exit_code": 0}')
def test_outcome_of_a_shell_result_equals_that_of_the_parsed_result(content: bytes) -> None:
    outcome = classify_outcome(content, SHELL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes, "_is_plain_success", lambda _content: False)
        assert outcome == classify_outcome(content, SHELL)


def test_common_shell_successes_are_not_parsed() -> None:
    assert outcomes._is_plain_success(b'{"output": "done", "exit_code": 0, "error": null}')
    assert not outcomes._is_plain_success(b'{"output": "done", "exit_code": 1, "error": null}')


NOW = 1_760_000_000.0
TIMES: Any = st.sampled_from(
    [NOW, NOW + 1, int(NOW) + 2, 0.0, -1.0, 5e9, float("nan"), float("inf"), None, "noon", True]
)


@given(st.lists(TIMES, max_size=6), st.sampled_from([NOW, 0.0]))
@example([NOW, float("nan"), NOW + 1], NOW)
def test_times_equal_those_that_are_checked_one_by_one(times: list[Any], started: float) -> None:
    session = ScannedSession("s", started_at=started)
    rows = [ScannedMessage(number, "user", at) for number, at in enumerate(times, 1)]
    facts = read_facts(session, rows, ()).facts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_entries, "_are_plausible", lambda _times: False)
        assert facts == read_facts(session, rows, ()).facts


@given(st.one_of(st.none(), st.integers(), st.binary(), st.text(st.characters())))
@example("call_\ud800")
def test_a_reference_is_the_checksum_of_a_text(call_id: Any) -> None:
    is_text = isinstance(call_id, str)
    assert reference_of(call_id) == (crc32(call_id.encode(errors="replace")) if is_text else 0)
