"""Lines of IRC: whatever is received is a line or an error, and nothing sent is more than one."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.irc_setup import plugin_module

lines = plugin_module("lines")
middles = st.text(st.characters(exclude_characters="\0\r\n "), min_size=1).filter(
    lambda text: not text.startswith(":") and text.isprintable()
)
trailings = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"PING :a b\r\n", ("PING", ("a b",), "", {})),
        (b":ann!a@h PRIVMSG #c ::)\r\n", ("PRIVMSG", ("#c", ":)"), "ann!a@h", {})),
        (b"@a;c=\\:\\s\\\\ :s 001  me :\r\n", ("001", ("me", ""), "s", {"a": "", "c": "; \\"})),
        (b"cap * ls * :x\n", ("CAP", ("*", "ls", "*", "x"), "", {})),
        (b"MODE a:b  +i\r\n", ("MODE", ("a:b", "+i"), "", {})),
    ],
)  # fmt: skip
def test_a_line_is_parsed(data: bytes, expected: tuple[object, ...]) -> None:
    assert tuple(lines.parse_line(data)) == expected


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(alphabet="@:; =\\!#abPING\r", max_size=60).map(str.encode))
def test_any_bytes_are_a_line_or_a_malformed_line(data: bytes) -> None:
    try:
        line = lines.parse_line(data)
    except lines.MalformedLineError:
        return
    assert line.command.isalnum()
    assert all(" " not in param and param for param in line.params[:-1])
    assert line.nick == line.source.partition("!")[0]


@given(st.lists(middles, max_size=4), trailings)
def test_a_formatted_line_is_parsed_as_it_was(middle: list[str], trailing: str) -> None:
    try:
        data = lines.format_line("PRIVMSG", *middle, trailing)
    except lines.MalformedLineError:
        assert len(" ".join((*middle, trailing)).encode()) > 480
        return
    assert data.count(b"\n") == data.count(b"\r") == 1
    assert lines.parse_line(data) == lines.IrcLine("PRIVMSG", (*middle, trailing))


@pytest.mark.parametrize("param", ["a b", "", ":a", "a\nb", "a\rb", "a\0b"])
def test_a_parameter_cannot_change_the_structure_of_a_line(param: str) -> None:
    with pytest.raises(lines.MalformedLineError):
        lines.format_line("PRIVMSG", param, "text")


@given(st.text(max_size=2000))
@example("```" + "code " * 300)
@example("x" * 2000)
def test_a_split_text_fits_and_loses_nothing_but_white_space(text: str) -> None:
    parts = lines.split_message(text, "#channel")
    for part in parts:
        relayed = f":{'n' * 107}@ PRIVMSG #channel :{part}\r\n".encode("utf-8", "replace")
        assert len(relayed) <= 512
        lines.format_line("PRIVMSG", "#channel", part)
    kept = lines.UNSENDABLE.sub("", text)
    assert "".join("".join(parts).split()) == "".join(kept.split())
