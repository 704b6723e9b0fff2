"""What the words of a shell command will be when it runs, as far as can be known.

Quotes and escapes are undone, variables with one known value are filled in, unquoted ones
are split as the shell would. What only the run can tell is UNKNOWN in the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tree_sitter import Node

UNKNOWN_PART = "\ufffc"
SPLIT = "\ue000"  # where the shell parts an unquoted value into words
STREAM = "/dev/fd/63"  # what <(…) becomes
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
MAX_FIELDS = 64
ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))",
    re.DOTALL,
)
ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ANSI_LETTERS |= {"e": "\x1b", "E": "\x1b", **{mark: mark for mark in "\\'\"?"}}


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a table of them is written."""
    return frozenset(text.split())


class KnownVariables(NamedTuple):
    """The variables of a script whose value is certain, and the home folder.

    A value comes with the place in the text from which on it holds.
    """

    known: Mapping[str, tuple[str, int]]
    home: str

    def at(self, name: str, place: int) -> str | None:
        """The value of a variable that is used at *place*."""
        value, since = self.known.get(name, (None, 0))
        return value if place >= since else None


def source(node: Node) -> str:
    """The text of a node as it was written."""
    return (node.text or b"").decode(errors="replace")


def fields(nodes: list[Node], values: KnownVariables) -> list[str]:
    """The words that adjacent nodes become: most often one, none or several by splitting."""
    whole = "".join(_resolved(node, values) for node in nodes)
    written = "".join(source(node) for node in nodes)
    if written.startswith("~"):
        whole = _home(whole, values)
    parts = [part for part in whole.split(SPLIT) if part] if SPLIT in whole else [whole]
    if "{" in written and BRACES.search(written):
        parts = [brace for part in parts for brace in _braces(part)]
    return parts


def _home(text: str, values: KnownVariables) -> str:
    """`~` is the home folder; whose `~name` is, only the machine knows."""
    name, slash, rest = text[1:].partition("/")
    if not name:
        return values.home + slash + rest
    return ("/root" if name == "root" else UNKNOWN_PART) + slash + rest


def _braces(text: str) -> list[str]:
    results = [text]
    while any(BRACES.search(item) for item in results) and len(results) < MAX_FIELDS:
        results = [item for item in results for item in _one_brace(item)]
    return results


def _one_brace(text: str) -> list[str]:
    match = BRACES.search(text)
    if match is None:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    return [before + choice + after for choice in match.group(1).split(",")]


def _resolved(node: Node, values: KnownVariables, *, is_quoted: bool = False) -> str:
    handler = HANDLERS.get(node.type)
    if handler is not None:
        return handler(node, values)
    if node.type in {"simple_expansion", "expansion"}:
        return _expanded(node, values, is_quoted=is_quoted)
    return source(node) if node.child_count == 0 else UNKNOWN_PART


def _word(node: Node, _values: KnownVariables) -> str:
    return re.sub(r"\\(.)", lambda match: match[1].strip("\n"), source(node), flags=re.DOTALL)


def _raw(node: Node, _values: KnownVariables) -> str:
    return source(node)[1:-1]


def _ansi(node: Node, _values: KnownVariables) -> str:
    def character(match: re.Match[str]) -> str:
        two, four, eight, octal, letter = match.groups()
        if digits := two or four or eight:
            return _character(int(digits, 16))
        if octal:
            return _character(int(octal, 8) & 255)
        return ANSI_LETTERS.get(letter, UNKNOWN_PART)  # others are rare, and read in odd ways

    text = source(node)[2:-1]
    if "\\x{" in text:  # an undocumented form of any length, with or without an end
        return UNKNOWN_PART
    return ANSI_ESCAPE.sub(character, text)


def _character(code: int) -> str:
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else UNKNOWN_PART


def _string(node: Node, values: KnownVariables) -> str:
    """Between its children a string may have text that belongs to none of them."""
    text = node.text or b""
    result, at = [], 1
    for child in node.children[1:-1]:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        result.append(_unescaped(text[at:start]))
        if child.type == "string_content":
            result.append(_unescaped(child.text or b""))
        else:
            result.append(_resolved(child, values, is_quoted=True))
        at = end
    result.append(_unescaped(text[at : len(text) - 1]))
    return "".join(result)


def _unescaped(text: bytes) -> str:
    """The few escapes that double quotes know."""
    return re.sub(
        r"\\([\\$`\"\n])", lambda match: match[1].strip("\n"), text.decode(errors="replace")
    )


def _joined(node: Node, values: KnownVariables) -> str:
    return "".join(_resolved(child, values) for child in node.children)


def _expanded(node: Node, values: KnownVariables, *, is_quoted: bool) -> str:
    names = [child for child in node.children if child.is_named]
    is_plain = len(names) == 1 and re.fullmatch(r"\$\{?\w+\}?", source(node)) is not None
    value = values.at(source(names[0]), node.start_byte) if is_plain else None
    if value is None:
        return UNKNOWN_PART
    if is_quoted:
        return value
    if "IFS" not in values.known:
        return UNKNOWN_PART
    return re.sub(r"[ \t\n]+", SPLIT, value)


def _dollar(node: Node, _values: KnownVariables) -> str:
    """A `$` that the parser left alone: before quotes it means nothing, elsewhere it may."""
    around = node.parent
    while around is not None and around.end_byte == node.end_byte:
        around = around.parent
    if around is None:
        return "$"
    after = (around.text or b"")[node.end_byte - around.start_byte :][:1].decode(errors="replace")
    if after == '"' and around.type != "string":
        return ""
    return UNKNOWN_PART if re.match(r"[\w{(@*#?!$'-]", after) else "$"


HANDLERS: dict[str, Callable[[Node, KnownVariables], str]] = {
    "word": _word,
    "raw_string": _raw,
    "ansi_c_string": _ansi,
    "string": _string,
    "translated_string": _joined,
    "concatenation": _joined,
    "command_name": _joined,
    "process_substitution": lambda _node, _values: STREAM,
    "command_substitution": lambda _node, _values: UNKNOWN_PART,
    "arithmetic_expansion": lambda _node, _values: UNKNOWN_PART,
    "brace_expression": lambda _node, _values: UNKNOWN_PART,
    "$": _dollar,
}
