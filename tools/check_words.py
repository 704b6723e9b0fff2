"""Check text for wording that docs, messages, docstrings and comments avoid.

    python3 tools/check_words.py            check the default files (CHECKED below)
    python3 tools/check_words.py PATH...    check these files and folders

Checked are the string literals, docstrings and comments of Python and TypeScript files, the code of
shell scripts, the prose of Markdown and HTML files, and JSON and YAML files as a whole. A line with
the comment `words: allow` is skipped. Standard library only.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
ALLOW_MARKER = "words: allow"

PLUGIN = "plugins/hermes-achievements/dashboard"
PAGE = ("web/index.html", "web/src", f"{PLUGIN}/src", f"{PLUGIN}/manifest.json")
PROGRAMS = ("hermes", "tools", "src", "plugins")
DOCS = (
    "README.md",
    "ARCHITECTURE.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "plugins/README.md",
)
CHECKED = [*PAGE, *PROGRAMS, *DOCS]

SKIPPED = {"node_modules", "dist", "build", "__pycache__", "check_words.py"}


class Pattern(NamedTuple):
    """Wording to avoid, and what to write instead."""

    expression: re.Pattern[str]
    suggestion: str


def _pattern(expression: str, suggestion: str) -> Pattern:
    return Pattern(re.compile(rf"\b(?:{expression})\b", re.IGNORECASE), suggestion)


PATTERNS = (
    _pattern(r"nobody|somebody|anybody|everybody|whoever", "name the role: user, caller, process"),
    _pattern(
        r"(?<!there\s)(?:is|are|was|were)\s+no(?!\s+longer)\s+\w+",
        "'invalid X', 'not an X' or 'no X'",
    ),
    _pattern(r"no\s+more(?!\s+than)|any\s*more(?!\s+than)", "'no longer', or a verb: 'revoke'"),
    _pattern(r"anew", "'again', or a verb: 'rebuild', 'restart'"),
    _pattern(r"(?:go|goes|went|gone|going)\s+on", "'continue'"),
    _pattern(r"(?:take|takes|took|taken|taking)\s+(?:\S+\s+){0,3}?away", "'remove'"),
    _pattern(r"(?:take|takes|took|taken|taking)\s+(?:\S+\s+){0,3}?along", "'include', 'export'"),
    _pattern(r"(?:let|lets|letting)\s+(?:(?:me|them|us)\s+)?in", "'approve', 'sign in', 'allow'"),
    _pattern(r"(?:puts?|putting|brings?|brought)\s+(?:\S+\s+){0,2}?back", "'restore'"),
    _pattern(r"hears?|heard", "programs receive events; they do not hear"),
    _pattern(r"(?:is|are|was|were|be|been)\s+told", "'notified', 'delivered', 'reported'"),
    _pattern(r"by\s+itself", "'automatically'"),
    _pattern(r"for\s+good", "'permanently'"),
    _pattern(r"shall", "the imperative, 'will' or 'should'"),
    _pattern(r"does\s+not\s+run", "'is not running'"),
    _pattern(r"switch(?:es|ed)?\s+(?:\S+\s+)?(?:on|off)", "'enable', 'disable'"),
    _pattern(r"made[\s-]up", "'sample data', 'invented'"),
    _pattern(r"toy", "'demo'"),
    _pattern(r"strangers?", "'unknown user'"),
    _pattern(r"(?:take|takes|took|taken|taking)\s+(?:\S+\s+){0,3}?back", "'undo', 'restore'"),
    _pattern(r"(?:is|are)\s+of\s+another\s+(?:release|version)", "'is a different version'"),
    _pattern(r"exists?\s+already", "'already exists'"),
    _pattern(r"mend(?:s|ed|ing)?", "'fix', 'repair'"),
    _pattern(r"start-up", "'startup'"),
    _pattern(r"says\s+(?:so|that|how|what|when|whether|which|why)", "'shows', 'states', 'reports'"),
    _pattern(
        r"(?:commands?|database|file|gateway|log|page|program|server|settings?)\s+"
        r"(?:says?|said|tells?|told)",
        "programs do not speak: 'shows', 'reports', 'returns'",
    ),
    _pattern(r"(?:error|answer)\s+of(?=\s+\w+:)", "'error from X', 'response from X'"),
)


class Text(NamedTuple):
    """Text and the line on which it starts."""

    line: int
    content: str


class Finding(NamedTuple):
    """Wording to avoid, and where it is."""

    path: Path
    line: int
    words: str
    suggestion: str


def find(path: Path) -> list[Finding]:
    """Every avoided wording in a file, in the order of its lines."""
    if path.suffix and path.suffix not in READERS:
        return []
    return sorted(_find(path, path.read_text("utf-8")), key=lambda item: item.line)


def _find(path: Path, source: str) -> Iterator[Finding]:
    lines = source.splitlines()
    for text in _texts(path, source):
        for pattern in PATTERNS:
            for match in pattern.expression.finditer(text.content):
                line = text.line + text.content.count("\n", 0, match.start())
                if ALLOW_MARKER not in "".join(lines[line - 1 : line]):
                    yield Finding(path, line, match.group(), pattern.suggestion)


def _texts(path: Path, source: str) -> Iterator[Text]:
    if path.suffix:
        return READERS[path.suffix](source)
    first_line = source.partition("\n")[0]
    if not first_line.startswith("#!"):
        return iter(())
    return _python_texts(source) if "python" in first_line else _shell_texts(source)


def _python_texts(source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str() as content):
                yield Text(node.lineno, content)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string)


# A comment or a string literal, whichever starts first.
_TYPESCRIPT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
_IMPORT = re.compile(r"""(?m)^(?:import\b[^;"']*|export\b[^;"'=]*from\s*)["'][^"'\n]*["'];""")


def _typescript_texts(source: str) -> Iterator[Text]:
    source = _IMPORT.sub(_blank, source)
    for match in _TYPESCRIPT.finditer(source):
        yield Text(1 + source.count("\n", 0, match.start()), match.group())


def _shell_texts(source: str) -> Iterator[Text]:
    yield Text(1, re.sub(r"(?m)^[ \t]*#.*$", "", source))


_CODE = re.compile(r"(?ms)^(```|~~~).*?^\1|<(script|style)\b.*?</\2>|`[^`\n]*`")


def _prose(source: str) -> Iterator[Text]:
    yield Text(1, _CODE.sub(_blank, source))


def _whole(source: str) -> Iterator[Text]:
    yield Text(1, source)


def _blank(match: re.Match[str]) -> str:
    """As many lines as the match has, with nothing on them."""
    return "\n" * match.group().count("\n")


READERS: dict[str, Callable[[str], Iterator[Text]]] = {
    ".py": _python_texts,
    ".ts": _typescript_texts,
    ".tsx": _typescript_texts,
    ".md": _prose,
    ".html": _prose,
    ".json": _whole,
    ".yaml": _whole,
}


def files_below(path: Path) -> Iterator[Path]:
    """The file itself, or every file of a folder that is not generated."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            if child.name not in SKIPPED:
                yield from files_below(child)


def main(arguments: list[str]) -> int:
    """Print every finding; 1 if there is one."""
    paths = [Path(argument) for argument in arguments] or [ROOT / item for item in CHECKED]
    missing = [path for path in paths if not path.exists()]
    for path in missing:
        sys.stderr.write(f"{path}: no such file or folder\n")
    findings = [item for path in paths for file in files_below(path) for item in find(file)]
    for finding in findings:
        shown = (
            finding.path.relative_to(ROOT) if finding.path.is_relative_to(ROOT) else finding.path
        )
        sys.stdout.write(f"{shown}:{finding.line}: {finding.words!r}: write {finding.suggestion}\n")
    return 1 if findings or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
