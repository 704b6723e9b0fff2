"""A command line taken apart: every simple command anywhere in it, with what it reads.

Pipes, lists, subshells, loops, functions and substitutions are all walked. Where the parser
and bash could disagree, the whole is called unparsable, which is asked for: every character of
the text must belong to a token that bash would read in the same way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions.shell_words import (
    SPLIT,
    UNKNOWN_PART,
    KnownVariables,
    fields,
    source,
    word_set,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


HEREDOC_WORD = re.compile(r"\\?[\w.-]+|'[\w.-]+'|\"[\w.-]+\"")
MORE_DELIMITER = re.compile(r"<<-?[ \t]*+(?:\\?[\w.-]++|'[^']*+'|\"[^\"]*+\")(?=[^\s;|&)<>])")
HEREDOC_BODY_TYPES = frozenset({"heredoc_body", "heredoc_end", "heredoc_content"})


class Extent(NamedTuple):
    """The lines of a here-document: that of its `<<`, and that of its end."""

    start: int
    end: int
    strips_tabs: bool
    is_quoted: bool


def extent(redirect: Node, lines: list[str]) -> Extent | None:
    """Where bash sees a here-document begin and end; None when it has no end."""
    start = next((child for child in redirect.children if child.type == "heredoc_start"), None)
    if start is None or not HEREDOC_WORD.fullmatch(source(start)):
        return None
    word = re.sub(r"['\"\\]", "", source(start))
    strips_tabs = redirect.children[0].type == "<<-"
    for row in range(start.start_point.row + 1, len(lines)):
        line = lines[row].lstrip("\t") if strips_tabs else lines[row]
        if line == word:
            return Extent(start.start_point.row, row, strips_tabs, word != source(start))
    return None


def is_sound(redirect: Node, text: str) -> bool:
    """Whether the parser saw the same here-document as bash will."""
    lines = text.split("\n")
    result = extent(redirect, lines)
    ends = [child for child in redirect.children if child.type == "heredoc_end"]
    if result is None or len(ends) != 1 or ends[0].start_point.row != result.end:
        return False
    if MORE_DELIMITER.search(lines[result.start]):
        return False  # the delimiter has more parts
    others = [child for child in redirect.children if child.type not in HEREDOC_BODY_TYPES]
    if any(child.end_point.row != result.start for child in others):
        return False
    if lines[result.start].count("<<") > 1:
        return False  # several on one line
    body = "\n".join(lines[result.start + 1 : result.end])
    return result.is_quoted or ("`" not in body and "\\\n" not in body)


def body(redirect: Node) -> str | None:
    """The text of a here-document."""
    root = redirect
    while root.parent is not None:
        root = root.parent
    lines = b"\n" * root.start_point.row + (root.text or b"")
    result = extent(redirect, lines.decode(errors="replace").split("\n"))
    if result is None:
        return None
    rows = lines.decode(errors="replace").split("\n")[result.start + 1 : result.end]
    text = "\n".join(row.lstrip("\t") if result.strips_tabs else row for row in rows) + "\n"
    is_expanded = not result.is_quoted and re.search(r"[$`\\]", text) is not None
    return text + UNKNOWN_PART if is_expanded else text


MAX_COMMAND_CHARACTERS = 100_000
MAX_COMMANDS = 300
MAX_NODES = 20_000
NOT_WORDS = frozenset(
    {"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment"}
)
ARGUMENTS = word_set(
    "word string raw_string concatenation simple_expansion expansion number ansi_c_string"
)
SINGLE_WORD_TYPES = word_set("variable_assignment concatenation command_name simple_expansion")
ASSIGNERS = frozenset(
    {"read", "mapfile", "readarray", "printf", "getopts", "let", "unset", "wait", "exec"}
)
KEYWORDS = word_set(
    "{ } do done then fi esac coproc in else elif if while until for case select function [[ ]] (( "
    "!"
)
# How bash reads the text of a token; the parser accepts more.
LEAF_TEXTS = {
    "raw_string": re.compile(r"'[^']*'"),
    "ansi_c_string": re.compile(r"\$'(?:\\.|[^'\\])*'", re.DOTALL),
    "regex": re.compile(r"(?:\\.|[^\s`;&<>\"'$\\]|\$(?![({\w'\"]))+"),
    "special_variable_name": re.compile(r"[*@?!#$_0-]"),
    "heredoc_start": HEREDOC_WORD,
}
LEAF_TEXTS["extglob_pattern"] = LEAF_TEXTS["regex"]
WORD_TEXT = re.compile(r"(?:\\.|[^\s'\"`$;&|()<>\\])+", re.DOTALL)
QUOTED_TEXT = re.compile(r'(?:\\.|[^"`$\\]|\$(?![({\[\w@*#?!$-]))*', re.DOTALL)
# Text that is code if it is expanded once more: `$(`, a backtick, or the start of one.
QUOTED_CODE = re.compile(r"\$(?:[({\['\"]|$)|`|\\(?:x24|x60|0?44|0?140|[uU]0*24|[uU]0*60)")
ARITHMETIC_TESTS = word_set("-v -R -eq -ne -lt -le -gt -ge")
# Variables whose value bash expands or runs.
EXPANDED_VARIABLES = re.compile(
    r"\b(?:PS[0-4]|PROMPT_COMMAND|BASH_ENV|ENV|BASH_CMDS|BASH_ALIASES|SHELLOPTS|BASHOPTS)\b"
)
PLAIN_TYPES = word_set(
    "program list pipeline command command_name word raw_string string string_content number "
    'concatenation comment file_redirect file_descriptor redirected_statement && || | ; > < >& "'
) | {"\n"}
BOUNDARIES = frozenset(" \t\n;&|()")
WORD_ENDS = b" \t\n;&|()<>`"
# Bash expands the word behind `>&` twice: `>&'$(x)'` runs x.
TWICE_EXPANDED = re.compile(r"[^>]*>&\s*[\w./~+-]+")
NAMED_DESCRIPTOR = re.compile(rb"\{\w+(?:\[[^]]*\])?\}$")
TEST_MARKS = word_set("[ [[ ] ]]")
BLANKS = b" \t\n"  # others that the parser takes for blanks are letters to bash
CONTINUATION = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")


class ShellCommand(NamedTuple):
    """One simple command."""

    words: tuple[str, ...]
    fed: str | None = None  # what it reads, when that is known
    is_fed: bool = False  # whether it reads what another command prints
    is_elevated: bool = False  # whether it runs as root
    text: str = ""  # as it is written

    @property
    def program(self) -> str:
        """The name of the program without its folder; empty when it is not known."""
        if not self.words or UNKNOWN_PART in self.words[0] or re.search(r"[*?\[]", self.words[0]):
            return ""
        return self.words[0].rstrip("/").rpartition("/")[2]


class WriteTarget(NamedTuple):
    """A file that a redirection writes."""

    path: str
    text: str  # the redirection as it is written


class ShellScript(NamedTuple):
    """What a command line consists of."""

    commands: tuple[ShellCommand, ...] = ()
    writes: tuple[WriteTarget, ...] = ()  # of redirections
    redirects: tuple[str, ...] = ()  # of files, as they are written
    functions: tuple[tuple[str, str], ...] = ()  # names and bodies
    assigned: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()  # of several words, that variables get
    is_parsed: bool = True
    is_plain: bool = False  # nothing but commands with constant words
    has_quoted_code: bool = False
    expands_again: bool = False  # evaluates text that may come from quotes


class ShellParser:
    """Parses bash. The grammar is loaded when it is first needed."""

    def __init__(self, home: str, cwd: str, own_pid: int) -> None:
        self._home = home
        self._fixed = {"HOME": home, "PWD": cwd, "IFS": " ", "PPID": str(own_pid)}

    def parse(self, text: str) -> ShellScript:
        """Take *text* apart."""
        if len(text) > MAX_COMMAND_CHARACTERS or any(
            mark in text for mark in (UNKNOWN_PART, SPLIT, "\0")
        ):
            return ShellScript(is_parsed=False)
        root = _tree(text)
        if root is None:
            return ShellScript(is_parsed=False)
        if "\\\n" in text:
            if ("#" in text or "<<" in text) and not _is_sound(root, text):
                return ShellScript(is_parsed=False)  # where lines are joined is not certain
            text = _joined_lines(root, text)
            root = _tree(text) or root
        return self._script(root) if _is_sound(root, text) else ShellScript(is_parsed=False)

    def _script(self, root: Node) -> ShellScript:
        nodes = list(_walk(root))
        values = self._values(nodes)
        commands = [_command(node, values) for node in nodes if node.type == "command"]
        declarations = (node for node in nodes if node.type == "declaration_command")
        commands += [_declaration(node, values) for node in declarations]
        commands += _orphans(nodes, values)
        return ShellScript(
            tuple(command for command in commands if command.words),
            tuple(_targets(nodes, values)),
            tuple(source(node) for node in nodes if node.type == "file_redirect"),
            tuple(_function(node) for node in nodes if node.type == "function_definition"),
            frozenset(_assigned_names(nodes)),
            tuple(_long_values(nodes, values)),
            not any(command.program in KEYWORDS for command in commands),
            all(node.type in PLAIN_TYPES and not _is_pattern(node) for node in nodes),
            any(_is_quoted_code(node) for node in nodes),
            re.search(r"\{\w+\[", source(root)) is not None or any(map(_expands_again, nodes)),
        )

    def _values(self, nodes: list[Node]) -> KnownVariables:
        """Variables that are set once, for certain, to something known, by an assignment."""
        names = list(_assigned_names(nodes))
        known = {name: (value, 0) for name, value in self._fixed.items() if name not in names}
        if any(_may_set_anything(node) for node in nodes):
            return KnownVariables(known, self._home)
        touched = _touched(nodes) | {"IFS"}
        for node in nodes:
            name, value = _assignment(node)
            if name and names.count(name) == 1 and name not in touched:
                result = fields([value], KnownVariables(known, self._home)) if value else [""]
                if len(result) == 1 and UNKNOWN_PART not in result[0]:
                    known[name] = result[0], node.end_byte
        return KnownVariables(known, self._home)


def is_available() -> bool:
    """Whether commands can be parsed here: there is no wheel of the parser for musl on arm64."""
    return _tree("true") is not None


def _tree(text: str) -> Node | None:
    """The tree of *text*; None without a parser."""
    try:
        import tree_sitter_bash  # noqa: PLC0415 - only when a command is reviewed
        from tree_sitter import Language, Parser  # noqa: PLC0415 - as above
    except ModuleNotFoundError:
        return None
    return Parser(Language(tree_sitter_bash.language())).parse(text.encode()).root_node


def _walk(root: Node) -> Iterator[Node]:
    """Every node, in the order of the text."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        left.extend(reversed(node.children))


def _is_sound(root: Node, text: str) -> bool:
    """Whether bash would see the same in the text as the parser did."""
    if root.has_error:
        return False
    data = text.encode()
    end = commands = 0
    for number, node in enumerate(_walk(root)):
        commands += node.type == "command"
        if commands > MAX_COMMANDS or number > MAX_NODES:
            return False
        if not _is_sound_node(node, data, text):
            return False
        if node.child_count == 0 or node.type in {"string", "heredoc_body"}:
            skipped = data[end : node.start_byte].replace(b"\\\n", b"").strip(BLANKS)
            if skipped and not (skipped == b"-" and node.type.startswith("<<")):
                return False  # but for `python3 - <<EOF`, whose `-` the parser drops
            end = max(end, node.end_byte)
    return not data[end:].replace(b"\\\n", b"").strip(BLANKS)


def _is_sound_node(node: Node, data: bytes, text: str) -> bool:
    if node.type == "comment":
        return _is_comment(node, data)
    if node.type.endswith("_redirect") and NAMED_DESCRIPTOR.search(data[: node.start_byte][-200:]):
        return False  # `{x}>f` is a redirection, and not a word before one
    if node.type == "heredoc_redirect":
        return is_sound(node, text)
    is_torn = node.type in SINGLE_WORD_TYPES and _is_torn(node, data)
    if is_torn or _is_ended_test(node) or _feeds_stray_words(node):
        return False
    ends_word = node.type in {"file_redirect", "herestring_redirect", "variable_assignment"}
    if ends_word and data[node.end_byte : node.end_byte + 1].strip(WORD_ENDS):
        return False  # bash takes what follows for a part of the word
    is_sound_token = node.child_count > 0 or (_is_apart(node, data) and _is_sound_leaf(node))
    return is_sound_token and _is_sound_text(node)


def _feeds_stray_words(node: Node) -> bool:
    """Whether the command stands behind its input: the parser does not see who reads it."""
    if node.type != "redirected_statement":
        return False
    body = [child for child in node.named_children if not child.type.endswith("_redirect")]
    return all(child.type == "variable_assignment" for child in body) and any(
        child.type != "file_redirect" or source(child).lstrip("0123456789").startswith("<")
        for child in node.named_children
        if child.type.endswith("_redirect")
    )


def _is_ended_test(node: Node) -> bool:
    """Whether a line break ends the command `[` before its mark."""
    return node.type == "test_command" and node.children[0].type == "[" and "\n" in source(node)


def _is_apart(node: Node, data: bytes) -> bool:
    """Whether the mark of a test is a word: `[[~` is the name of a program."""
    is_mark = node.type in TEST_MARKS and node.parent is not None
    if not is_mark or (node.parent is not None and node.parent.type != "test_command"):
        return True
    behind = data[node.end_byte : node.end_byte + 1]
    if node.type in {"[", "[["}:
        return behind != b"" and behind in BLANKS
    return data[node.start_byte - 1 : node.start_byte] in BLANKS and not behind.strip(WORD_ENDS)


def _is_sound_text(node: Node) -> bool:
    """Whether the text of a node between its tokens is read by bash as text, too."""
    text = source(node)
    if node.type == "string":
        return all(QUOTED_TEXT.fullmatch(part) for part in _own_texts(node, "string_content"))
    if node.type == "heredoc_body" and not _is_literal(node):
        parts = _own_texts(node, "heredoc_content")
        return not any(re.search(r"(?<!\\)\$[({\[]", part) for part in parts)
    if node.type in {"subshell", "command_substitution"} and text.startswith(("((", "$((")):
        return False  # arithmetic for bash
    if node.type == "command_substitution" and text.startswith("`"):
        return not re.search(r"[`\\]", text[1:-1])
    if node.type != "file_redirect":
        return True
    return "\\" not in text and (">&" not in text or TWICE_EXPANDED.fullmatch(text) is not None)


def _is_sound_leaf(node: Node) -> bool:
    """Whether a token has the text that bash would read as this token."""
    kind, text = node.type, source(node)
    parent = node.parent.type if node.parent is not None else ""
    if kind in {"string_content", "heredoc_content", "heredoc_body", "heredoc_end"}:
        return True  # checked with what it is part of
    if not node.is_named:
        return text.strip() == kind.strip() and (
            "`" not in text or parent == "command_substitution"
        )
    if kind == "regex" and parent == "command":
        return False
    return LEAF_TEXTS.get(kind, WORD_TEXT).fullmatch(text) is not None


def _own_texts(node: Node, content: str) -> Iterator[str]:
    """The parts of a string that are text; the parser leaves some of them to no token."""
    quotes = node.type == "string"
    text, at = node.text or b"", int(quotes)
    for child in node.children:
        if child.type not in {content, '"'}:
            yield text[at : child.start_byte - node.start_byte].decode(errors="replace")
            at = child.end_byte - node.start_byte
    yield text[at : len(text) - int(quotes)].decode(errors="replace")


def _is_literal(body_node: Node) -> bool:
    """Whether the delimiter of a here-document is quoted, so that nothing in it is expanded."""
    siblings = body_node.parent.children if body_node.parent is not None else []
    return any(child.type == "heredoc_start" and source(child)[0] in "'\"\\" for child in siblings)


def _is_pattern(node: Node) -> bool:
    """Whether a word may become several, or an option, by the names of files."""
    return node.type == "word" and re.match(r"[*?\[]|.*[{}]", source(node)) is not None


def _is_quoted_code(node: Node) -> bool:
    if node.type in {"raw_string", "ansi_c_string"}:
        return QUOTED_CODE.search(source(node)[:-1]) is not None
    if node.type in {"word", "string_content", "heredoc_body", "extglob_pattern", "regex"}:
        return QUOTED_CODE.search(source(node)) is not None
    return node.type == "$" and node.parent is not None and node.parent.type != "simple_expansion"


def _expands_again(node: Node) -> bool:
    """Whether bash evaluates text here that was expanded or quoted before."""
    kind = node.type
    if kind in {"declaration_command", "unset_command"}:
        return any(is_computed_name(source(child)) for child in node.children[1:])
    if kind in {"word", "variable_name", "raw_string", "string_content"}:
        return EXPANDED_VARIABLES.search(source(node)) is not None
    if kind == "test_command":
        is_plain = node.children[0].type == "[["
        return any(_is_arithmetic_test(child, is_plain=is_plain) for child in _walk(node))
    marks = {child.type for child in node.children}
    return (
        kind in {"arithmetic_expansion", "c_style_for_statement", "subscript"}
        or (kind == "compound_statement" and "((" in marks)
        or (kind == "array" and "[" in source(node))  # the subscript of an element
        or (kind == "expansion" and bool({"@", "!", ":"} & marks))
    )


def _is_arithmetic_test(node: Node, *, is_plain: bool) -> bool:
    if not is_plain and node.type in {"expansion", "simple_expansion", "command_substitution"}:
        outer = node.parent  # of `[`, it may be the operator
        return outer is not None and outer.type not in {"string", "binary_expression"}
    return source(node) in ARITHMETIC_TESTS


def is_computed_name(word: str) -> bool:
    """Whether an argument of a builtin that takes names is more than a name or its plain value."""
    if re.match(r"-\w*[iaAnvpR]", word) is not None:
        return True
    return re.fullmatch(r"[\w.,:/+-]*|\w+=.*", word, re.DOTALL) is None


def _is_torn(node: Node, data: bytes) -> bool:
    """Whether there is a blank within what must be one word."""
    ends = [child.end_byte for child in node.children[:-1]]
    starts = [child.start_byte for child in node.children[1:]]
    gaps = (data[end:start] for end, start in zip(ends, starts, strict=True))
    return any(gap.replace(b"\\\n", b"") for gap in gaps)


def _is_comment(node: Node, data: bytes) -> bool:
    """A `#` begins a comment only where a word could begin."""
    at = node.start_byte
    if at == 0:
        return True
    return chr(data[at - 1]) in BOUNDARIES and data[max(0, at - 2) : at] != b"\\\n"


def _joined_lines(root: Node, text: str) -> str:
    """The text without its line continuations; comments and here-documents have none."""
    data = text.encode()
    matches = [node for node in _walk(root) if node.type in {"comment", "heredoc_body"}]
    result, at = [], 0
    for start, end in ((node.start_byte, node.end_byte) for node in matches):
        result += [CONTINUATION.sub(r"\1", data[at:start].decode()), data[start:end].decode()]
        at = end
    return "".join([*result, CONTINUATION.sub(r"\1", data[at:].decode())])


def _command(node: Node, values: KnownVariables) -> ShellCommand:
    words = _words(node.children, values)
    redirects = [child for child in node.children if child.type.endswith("_redirect")]
    for statement in _redirected(node):
        outer = [child for child in statement.children if child.type.endswith("_redirect")]
        if statement.children[0].end_byte == node.end_byte:
            words += [word for item in outer for word in _stray_words(item, values)]
        redirects += outer
    texts = [text for item in redirects if (text := _document(item, values)) is not None]
    if texts and any(_is_file_input(item) for item in redirects):
        texts.append(UNKNOWN_PART)
    fed = "\n".join(texts) if texts else None  # bash reads the last one
    feeder = _feeder(node)
    if feeder is not None:
        printed = _printed(feeder, values)
        # A document after a pipe may be read by another command of it.
        fed = printed if fed is None else f"{fed}\n{UNKNOWN_PART if printed is None else printed}"
    is_fed = feeder is not None or any(_is_stream(redirect) for redirect in redirects)
    return ShellCommand(tuple(words), fed, is_fed, text=source(node))


def _redirected(node: Node) -> Iterator[Node]:
    """The statements around a command whose redirections may be its own."""
    parent = node.parent
    while parent is not None and parent.type not in {"command_substitution", "program"}:
        if parent.type == "redirected_statement":
            yield parent
        parent = parent.parent


def _is_file_input(redirect: Node) -> bool:
    """Whether input comes from a file or a stream."""
    return redirect.type == "file_redirect" and any(
        child.type in {"<", "<&"} for child in redirect.children
    )


def _is_stream(redirect: Node) -> bool:
    """Whether input comes from `< <(…)`."""
    kinds = {child.type for child in redirect.children}
    return {"<", "process_substitution"} <= kinds


def _words(children: list[Node], values: KnownVariables) -> list[str]:
    """Arguments; nodes that touch each other are one word."""
    groups: list[list[Node]] = []
    for child in children:
        if child.type in NOT_WORDS:
            continue
        if groups and groups[-1][-1].end_byte == child.start_byte:
            groups[-1].append(child)
        else:
            groups.append([child])
    return [word for group in groups for word in fields(group, values)]


def _stray_words(redirect: Node, values: KnownVariables) -> list[str]:
    """In `rm >log -rf x` the parser takes the last words for part of the redirection."""
    if redirect.type == "heredoc_redirect":
        files = [child for child in redirect.children if child.type == "file_redirect"]
        inner = [word for child in files for word in _stray_words(child, values)]
        own = [child for child in redirect.children if child.type in ARGUMENTS]
        return inner + _words(own, values)
    if redirect.type != "file_redirect":
        return []
    named = [child for child in redirect.children if child.is_named]
    named = [child for child in named if child.type != "file_descriptor"]
    return _words(named[1:], values)


def _orphans(nodes: list[Node], values: KnownVariables) -> list[ShellCommand]:
    """Words behind a redirection that has no command before it."""
    results = []
    for node in nodes:
        if node.type == "redirected_statement" and not any(
            child.type == "command" for child in node.children
        ):
            words = [word for child in node.children for word in _stray_words(child, values)]
            results.append(ShellCommand(tuple(words)))
    return results


def _declaration(node: Node, values: KnownVariables) -> ShellCommand:
    return ShellCommand(tuple(_words(node.children, values)))


def _document(redirect: Node, values: KnownVariables) -> str | None:
    """The text of a here-document or a here-string."""
    if redirect.type == "herestring_redirect":
        return " ".join(_words(redirect.children[1:], values))
    if redirect.type == "heredoc_redirect":
        return body(redirect)
    return None


def _feeder(node: Node) -> Node | None:
    """What stands before this command in its pipe."""
    child, parent = node, node.parent
    while parent is not None and parent.type not in {"command_substitution", "program"}:
        if parent.type == "pipeline":
            before = [
                named_child
                for named_child in parent.named_children
                if named_child.end_byte <= child.start_byte
            ]
            if before:
                return before[-1]
            outer = parent.parent
            if outer is not None and outer.type == "heredoc_redirect" and outer.parent is not None:
                return outer.parent
        child, parent = parent, parent.parent
    return None


def _printed(feeder: Node, values: KnownVariables) -> str | None:
    """What a command that only prints gives to the next one."""
    if feeder.type == "redirected_statement":
        inner = feeder.children[0]
        texts = (_document(child, values) for child in feeder.children)
        if inner.type == "command" and _first_word(inner) == "cat":
            return next((text for text in texts if text is not None), None)
    if feeder.type != "command" or _first_word(feeder) not in {"echo", "printf"}:
        return None
    words = [word for word in _words(feeder.children, values)[1:] if word not in {"-e", "-n"}]
    return " ".join(words).replace("\\n", "\n")


def _targets(nodes: list[Node], values: KnownVariables) -> Iterator[WriteTarget]:
    """Files that redirections write."""
    for node in nodes:
        if node.type != "file_redirect":
            continue
        operator = next((child.type for child in node.children if not child.is_named), "")
        named = [
            child for child in node.children if child.is_named and child.type != "file_descriptor"
        ]
        if ">" not in operator or not named:
            continue
        if operator in {">&", "<&"} and named[0].type == "number":
            continue
        for path in fields(named[:1], values):
            yield WriteTarget(path, source(node))


def _function(node: Node) -> tuple[str, str]:
    name = next((child for child in node.children if child.type == "word"), None)
    return (source(name) if name else "", source(node.children[-1]))


def _first_word(node: Node) -> str:
    if node.type != "command":
        return ""
    name = next((child for child in node.children if child.type == "command_name"), None)
    return source(name) if name else ""


def _assignment(node: Node) -> tuple[str, Node | None]:
    """The name and value of an assignment that surely happens, and in this very shell."""
    if node.type != "variable_assignment" or node.parent is None:
        return "", None
    whole = (
        node.parent if node.parent.type in {"variable_assignments", "declaration_command"} else node
    )
    if whole.parent is None or whole.parent.type != "program":
        return "", None
    after = whole.next_sibling
    kinds = [child.type for child in node.children]
    if kinds[:2] != ["variable_name", "="] or (after is not None and after.type == "&"):
        return "", None
    return source(node.children[0]), node.children[2] if len(kinds) > 2 else None


def _long_values(nodes: list[Node], values: KnownVariables) -> Iterator[str]:
    """The values of assignments that have several words, as a command has."""
    for node in nodes:
        if node.type == "variable_assignment" and node.children[-1].type != "array":
            texts = fields([node.children[-1]], values)
            yield from (text for text in texts if " " in text and UNKNOWN_PART not in text)


def _assigned_names(nodes: list[Node]) -> Iterator[str]:
    """Every name that is given a value anywhere, as often as it is."""
    for node in nodes:
        if node.type in {"variable_assignment", "for_statement", "c_style_for_statement"}:
            for child in node.children:
                if child.type == "variable_name":
                    yield source(child)
                if child.type == "subscript":
                    yield from (source(child.children[0]),) * 2


def _may_set_anything(node: Node) -> bool:
    """Whether no variable is certain once this is in a script."""
    if node.type == "declaration_command":
        return re.search(r"\s-\w*n", source(node)) is not None  # another name for a variable
    return _first_word(node) in {"eval", "source", ".", "builtin", "command", "alias"}


def _touched(nodes: list[Node]) -> set[str]:
    """Names that something else than a plain assignment may change."""
    result: set[str] = set()
    for node in nodes:
        if node.type == "unset_command" or _first_word(node) in ASSIGNERS:
            result |= set(re.findall(r"\w+", source(node)))
        if node.type in {"compound_statement", "arithmetic_expansion"} and "((" in source(node)[:3]:
            result |= set(re.findall(r"[A-Za-z_]\w*", source(node)))
        if node.type == "variable_assignment" and node.parent and node.parent.type == "command":
            result.add(source(node.children[0]))
    return result
