"""Shell commands of the reference implementation, parsed from left to right."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from hermes_achievements.classification import shell_commands

TOKENS = re.compile(
    r"""
      (?P<quoted>  '[^']*' | "(?:[^"\\]|\\.)*" )
    | (?P<joint>   \\\n | \s (?<!\n) )
    | (?P<escaped> \\. )
    | (?P<comment> \#[^\n]* )
    | (?P<word>    <<< | \$\(\(.*?\)\) | \$?\{\S*?\} | (?<=\w=)\([^)]*\) )
    | <<-?[ \t]*\\?(?P<mark>['"]?)(?P<here>[A-Za-z_]\w*)(?P=mark)
    | (?P<cut>     && | \|\| | [;|\n`()] | (?<![<>&])&(?![>&]) | \$\( | \{(?=\s) | \} )
    | (?P<other>   . )
    """,
    re.DOTALL | re.VERBOSE,
)
VALUED = {
    "sudo": "-u -g -h -p -C", "doas": "-u", "nice": "-n", "env": "-u -C", "xargs": "-n -I -P -L -d",
    "timeout": "-s -k", "gtimeout": "-s -k", "ionice": "-c -n -p", "watch": "-n", "exec": "-a",
    "stdbuf": "-i -o -e", "time": "-f -o",
    "uv": "--with --python -p --extra --group --project --directory --env-file",
}  # fmt: skip


@dataclass
class Part:
    """A simple command: its text, its separator, and the following command."""

    text: str = ""
    end: str = ""
    then: Part | None = None
    is_inside: bool = False  # inside $(...), where the exit code is lost


def shell_labels(command: str) -> list[str]:
    return [*_shell_labels(command)]


@functools.lru_cache(maxsize=20_000)
def _shell_labels(command: str) -> list[str]:
    parts, is_background = simple_commands(command[: shell_commands.MAX_COMMAND_CHARACTERS])
    results = [(label_of(part.text.split()), part) for part in parts]
    labels = [label + exit_code_mark(part) for label, part in results if label][
        : shell_commands.MAX_LABELS
    ]
    return [*labels, "&"] if is_background else labels


def exit_code_mark(part: Part) -> str:
    """What the exit code proves: the outcome, only success (~), or nothing (?)."""
    if part.is_inside:
        return "?"
    if part.then is None or (part.end in (";", "\n") and is_empty(part.then)):
        return ""
    if part.end in ("(", ")", "{", "}"):
        return exit_code_mark(part.then)
    return "~" if part.end == "&&" and exit_code_mark(part.then) != "?" else "?"


def is_empty(part: Part) -> bool:
    is_last = part.then is None or (part.end in (";", "\n") and is_empty(part.then))
    return is_last and not part.text.strip()


def simple_commands(text: str) -> tuple[list[Part], bool]:
    """Each simple command, and whether the last runs in the background."""
    parts, marks, position, final = [part := Part()], [], 0, ""
    outer: list[tuple[str, Part]] = []
    while match := TOKENS.match(text, position):
        kind, token, position = match.lastgroup or "", match.group(), match.end()
        if kind == "comment" and part.text and not part.text[-1].isspace():
            kind, token, position = "other", "#", match.start() + 1
        if kind == "here":
            marks.append(match["here"])
        elif outer and token == outer[-1][0]:
            part = outer.pop()[1]
        elif token in ("$(", "`"):
            part.text += "\x01"
            outer.append((")" if token == "$(" else "`", part))
            parts.append(part := Part(is_inside=True))
        elif kind == "cut":
            part.end, part.then = token, Part(is_inside=part.is_inside)
            parts.append(part := part.then)
            while token == "\n" and marks:
                end = closing_line(marks.pop(0)).search(text, position)
                position = end.end() if end else position
        elif kind != "comment":
            part.text += bare(kind, token)
        if kind != "comment" and not token.isspace() and token != ";":
            final = token if kind == "cut" else ""
    return parts, final == "&"


def closing_line(mark: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{mark}[ \t]*$|\Z", re.MULTILINE)


def bare(kind: str, token: str) -> str:
    if kind == "quoted" and re.fullmatch(r"[\w./:@+-]+", token[1:-1]):
        return token[1:-1]
    return {"quoted": "\x01", "escaped": "\x01", "joint": " "}.get(kind, token)


def label_of(words: list[str]) -> str:
    words = unwrapped(words)
    if not words:
        return ""
    program = words[0].replace("\\", "/").split("/")[-1].lower().removesuffix(".exe")
    program, rest = "test" if program in ("[", "[[") else program, words[1:]
    if re.fullmatch(r"(python|pypy)(\d(\.\d+)?)?", program):
        options = len(rest) - len(without_options(rest, "-X -W"))
        module = rest.index("-m") + 1 if "-m" in rest[:options] else len(rest)
        return (label_of(rest[module:]) if module < len(rest) else "") or "python"
    is_run = rest and (
        shell_commands.RUNNERS.get(program) == 0 or rest[0] in shell_commands.RUN_WORDS
    )
    if program in shell_commands.RUNNERS and is_run:
        valued = VALUED.get(program, "")
        return label_of(without_options(rest[shell_commands.RUNNERS[program] :], valued))
    if not is_name(program) or program in shell_commands.SHELL_KEYWORDS:
        return ""
    return subcommand(program, rest) if program in shell_commands.SUBCOMMAND_PROGRAMS else program


def is_name(word: str) -> bool:
    return re.fullmatch("[a-z0-9_][a-z0-9_.+-]{0,23}", word) is not None


def without_options(words: list[str], valued: str = "") -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in valued.split() else 1 :]
    return words


def unwrapped(words: list[str]) -> list[str]:
    while words:
        word = words[0]
        if word in shell_commands.WRAPPERS | shell_commands.ARGUMENT_WRAPPERS:
            words = without_options(words[1:], VALUED.get(word, ""))
            words = words[1:] if word in shell_commands.ARGUMENT_WRAPPERS else words
        elif re.match(r"[A-Za-z_]\w*=", word):
            words = words[1:]
        else:
            break
    return words


def subcommand(program: str, rest: list[str]) -> str:
    if program == "node" and "--test" in rest:
        return "node --test"
    if program == "pacman" and [word for word in rest if word.startswith("-S")]:
        return "pacman -s"
    rest = without_options(rest, "-C -c -f -n --prefix")
    while rest and (rest[0].startswith("+") or rest[0].isdigit()):
        rest = without_options(rest[1:], "-C -c -f -n --prefix")
    if not rest or not is_name(rest[0].lower()):
        return program
    word, after = rest[0].lower(), [*rest[1:], ""][0]
    script = [*without_options(rest[1:]), ""][0]
    if program in ("npm", "pnpm", "yarn", "bun") and word in ("run", "exec") and script:
        name = script.lower().split(":")[0]
        return f"{program} run {name if is_name(name) else ''}".rstrip()
    if program == "uv" and word == "pip" and after:
        return f"uv pip {after.lower() if is_name(after.lower()) else ''}".rstrip()
    is_list = after in ("-l", "-n", "--list", "list", "show") or (word == "tag" and not after)
    is_listed = program == "git" and word in ("tag", "stash") and is_list
    return f"git {word} list" if is_listed else f"{program} {word}"
