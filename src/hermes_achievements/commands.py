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
SEPARATOR: Final = re.compile(r"&&|\|\||;|\||\n|(?<![<>&])&(?![>&])|\$\(|`|\(|\)|\{|\}")
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
    """What *command* runs, in order; `&` stands for running in the background."""
    text = _bare(command[:LONGEST])
    found: list[str] = []
    for part in SEPARATOR.split(text):
        label = _label(part.split())
        if label:
            found.append(label)
            if len(found) == MOST_LABELS:
                break
    if text.rstrip().endswith("&") and not text.rstrip().endswith("&&"):
        found.append("&")
    return tuple(found)


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
        return _with_subcommand(program, rest)
    return program


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
    for word in rest:
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in ("-C", "-c", "-f", "-n", "--prefix")
        elif NAME.match(word.lower()):
            follows = rest[rest.index(word) + 1 :]
            if word in RUN_WORDS and follows and program in ("npm", "pnpm", "yarn", "bun"):
                return f"{program} run {follows[0].lower()[:24]}"
            return f"{program} {word.lower()}"
        else:
            break
    return program
