"""What a shell command runs: the programs it names, not words that occur in it.

A command line is cut into simple commands at `&&`, `||`, `;`, `|`, `&` and line ends,
outside quotes, comments and here-documents. Each gives one label: its program, with the
subcommand for programs that do many things (`git commit`, `docker run`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
HERE_DOCUMENT: Final = re.compile(
    r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1([^\n]*)\n.*?(?:^[ \t]*\2[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
COMMENT: Final = re.compile(r"(?:^|(?<=\s))#[^\n]*")
SEPARATOR: Final = re.compile(r"(&&|\|\||;|\||\n|(?<![<>&])&(?![>&])|\$\(|`|\(|\)|\{|\})")
TRANSPARENT: Final = frozenset({"", "(", ")", "{", "}"})
SUCCESS: Final = "~"
UNKNOWN: Final = "?"
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=\S*$")
NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_.+-]{0,23}$")
PLACEHOLDER: Final = "\x01"
LONGEST: Final = 20_000
MOST_LABELS: Final = 12


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words before a program that are not the program.
WRAPPERS: Final = _words(
    "sudo doas env time nohup nice exec command builtin xargs then else do if while until "
    "elif ! watch stdbuf setsid ionice caffeinate"
)
# Words that start a program after some of their own: `timeout 60 make`.
COUNTED_WRAPPERS: Final = frozenset({"timeout", "gtimeout"})
RUNNERS: Final = {
    "npx": 0,
    "bunx": 0,
    "pnpx": 0,
    "uvx": 0,
    "uv": 1,
    "poetry": 1,
    "pdm": 1,
    "pipenv": 1,
    "rye": 1,
    "hatch": 1,
    "bundle": 1,
    "pixi": 1,
}
SCRIPT_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
RUN_WORDS: Final = frozenset({"run", "exec"})
PYTHONS: Final = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?$")
WITH_SUBCOMMAND: Final = _words(
    "git docker podman docker-compose npm pnpm yarn bun pip pip3 uv poetry cargo go make "
    "just mvn gradle gradlew kubectl helm terraform apt apt-get dnf yum brew pacman apk gem "
    "rails dotnet swift flutter deno node composer php bundle systemctl gh fly flyctl "
    "vercel netlify aws gcloud az ansible heroku conda mamba hermes nix zig mix stack cabal"
)
NO_PROGRAM: Final = _words(
    "cd echo export set unset true false pwd source . fi done esac for case in test [ [[ "
    "printf return exit local alias read wait shift trap eval umask ulimit function"
)


@lru_cache(maxsize=4096)
def labels(command: str) -> tuple[str, ...]:
    """What *command* runs, in order; `&` stands for running in the background.

    A label ends in `~` when the command's exit code tells only of its success
    (`pytest && git push`), and in `?` when it tells nothing (`pytest | tail`).
    """
    text = _bare(command[:LONGEST]).strip().rstrip("; \t\n")
    parts = SEPARATOR.split(text)
    found: list[str] = []
    tells = ""
    # From the end: what follows a command decides what the exit code says about it.
    for position in range(len(parts) - 1, -1, -2):
        words = parts[position].split()
        separator = parts[position + 1] if position + 1 < len(parts) else ""
        tells = _tells(tells, separator)
        label = _label(words)
        if label:
            found.append(label + tells)
    found = found[::-1][:MOST_LABELS]
    if text.endswith("&") and not text.endswith("&&"):
        found.append("&")
    return tuple(found)


def _tells(later: str, separator: str) -> str:
    """What the exit code tells of a command, given what it tells of the one behind it."""
    if separator in TRANSPARENT:
        return later
    return UNKNOWN if separator != "&&" or later == UNKNOWN else SUCCESS


def plain(label: str) -> str:
    """A label without what it says about the exit code."""
    return label[:-1] if label.endswith((SUCCESS, UNKNOWN)) else label


def _bare(command: str) -> str:
    """The command without what it quotes."""
    if "<<" in command:
        command = HERE_DOCUMENT.sub(r" \3\n", command)
    if "'" in command or '"' in command or "\\" in command:
        command = QUOTED.sub(_placeholder, command)
    if "#" in command:
        command = COMMENT.sub("", command)
    return command


def _placeholder(match: re.Match[str]) -> str:
    """A quoted word stays a word; an escaped line end joins two lines; `"run"` is run."""
    text = match.group()
    if text == "\\\n":
        return " "
    inner = text[1:-1]
    return inner if text[0] != "\\" and inner.isalnum() else PLACEHOLDER


def _label(words: list[str]) -> str:
    words = _without_wrappers(words)
    if not words:
        return ""
    program = _program(words[0])
    rest = words[1:]
    if PYTHONS.match(program):
        return _python_label(rest)
    if program in RUNNERS and rest:
        skip = RUNNERS[program]
        if skip == 0 or rest[0] in RUN_WORDS:
            return _label([word for word in rest[skip:] if not word.startswith("-")])
    if not NAME.match(program) or program in NO_PROGRAM:
        return ""
    if program in WITH_SUBCOMMAND:
        return _by_option(program, rest) or _with_subcommand(program, rest)
    return program


def _by_option(program: str, rest: list[str]) -> str:
    """Programs that are told what to do by an option."""
    if program == "node" and "--test" in rest:
        return "node --test"
    if program == "pacman" and any(word.startswith("-S") for word in rest):
        return "pacman -s"
    return ""


def _without_wrappers(words: list[str]) -> list[str]:
    position = 0
    while position < len(words):
        word = words[position]
        if word in COUNTED_WRAPPERS:
            position += 1
            while position < len(words) and words[position].startswith("-"):
                position += 1
            position += 1
        elif word in WRAPPERS or ASSIGNMENT.match(word):
            position += 1
            while word in WRAPPERS and position < len(words) and words[position].startswith("-"):
                position += 1
        else:
            break
    return words[position:]


def _program(word: str) -> str:
    name = word.replace("\\", "/").rsplit("/", 1)[-1].lower()
    return name.removesuffix(".exe")


def _python_label(rest: list[str]) -> str:
    for position, word in enumerate(rest):
        if word == "-m" and position + 1 < len(rest):
            return _label(rest[position + 1 :])
        if not word.startswith("-"):
            break
    return "python"


def _with_subcommand(program: str, rest: list[str]) -> str:
    is_value = False
    for position, word in enumerate(rest):
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in ("-C", "-c", "-f", "-n", "--prefix")
        elif NAME.match(word.lower()):
            return _refined(program, word.lower(), rest[position + 1 :])
        elif not word.startswith("+"):  # cargo +nightly
            break
    return program


def _refined(program: str, word: str, follows: list[str]) -> str:
    """The subcommand, with what tells it from others of the same name."""
    if word in RUN_WORDS and follows and program in SCRIPT_RUNNERS:
        return f"{program} run {follows[0].lower().partition(':')[0][:24]}"
    if program == "uv" and word == "pip" and follows:
        return f"uv pip {follows[0].lower()[:24]}"
    if program == "git" and word in ("tag", "stash") and _only_lists(follows, word):
        return f"git {word} list"
    return f"{program} {word}"


def _only_lists(follows: list[str], word: str) -> bool:
    first = follows[0] if follows else ""
    return first in ("-l", "--list", "list", "show") or (word == "tag" and not first)
