"""What a shell command runs: the programs it names, not words that occur in it.

A command line is cut into simple commands at `&&`, `||`, `;`, `|`, `&` and line ends,
outside quotes, comments and here-documents. Each gives one label: its program, with the
subcommand for programs that do many things (`git commit`, `docker run`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_COMMAND_CHARACTERS: Final = 20_000
MAX_LABELS: Final = 12
BACKGROUND: Final = "&"
SUCCESS: Final = "~"
UNKNOWN_LABEL: Final = "?"
PLACEHOLDER: Final = "\x01"  # stands for a word that is no plain one

TOKEN: Final = re.compile(
    r"""
      (?P<plain>   [A-Za-z0-9_./:=@%+,~^\[\]*?!-]+ )
    | (?P<blank>   [ \t\r\f\v]+ | \\\n )
    | (?P<quoted>  '[^']*' | "(?:[^"\\]|\\.)*" )
    | (?P<escaped> \\. )
    | (?P<comment> \#[^\n]* )
    | (?P<odd>     <<< | \$\(\(.{0,200}?\)\) | \$?\{\S{0,200}?\} | (?<=\w=)\([^)]{0,2000}\) )
    | <<-?[ \t]*\\?(?P<mark>['"]?)(?P<here>[A-Za-z_]\w*)(?P=mark)
    | (?P<cut>     && | \|\| | [;|\n`()] | (?<![<>&])&(?![>&]) | \$\( | \{(?=\s) | \} )
    | (?P<other>   . )
    """,
    re.DOTALL | re.VERBOSE,
)
# Nothing in it that would have to be cut or unquoted.
ONE_COMMAND: Final = re.compile(r"[A-Za-z0-9_./:=@%+, -]{0,2000}\Z")
TRANSPARENT: Final = frozenset("(){}")
PLAIN_WORD: Final = re.compile(r"[\w./:@+-]+$")
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
PROGRAM_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_.+-]{0,23}$")
PYTHONS: Final = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?$")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words before a program that are not the program.
WRAPPERS: Final = _words(
    "sudo doas env time nohup nice exec command builtin xargs then else do if while until "
    "elif ! watch stdbuf setsid ionice caffeinate"
)
# Words that start a program after a word of their own: `timeout 60 make`.
COUNTED_WRAPPERS: Final = _words("timeout gtimeout")
# Options that are followed by a value of theirs.
VALUED: Final = {
    name: _words(options)
    for name, options in {
        "sudo": "-u -g -h -p -C",
        "doas": "-u",
        "nice": "-n",
        "env": "-u -C",
        "xargs": "-n -I -P -L -d",
        "timeout": "-s -k",
        "gtimeout": "-s -k",
        "ionice": "-c -n -p",
        "watch": "-n",
        "exec": "-a",
        "stdbuf": "-i -o -e",
        "time": "-f -o",
        "uv": "--with --python -p --extra --group --project --directory --env-file",
        "python": "-X -W",
    }.items()
}
NONE: Final[frozenset[str]] = frozenset()
SUBCOMMAND_VALUED: Final = _words("-C -c -f -n --prefix")
# Programs that run another one, and how many words of theirs come before it.
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
SCRIPT_RUNNERS: Final = _words("npm pnpm yarn bun")
RUN_WORDS: Final = _words("run exec")
LISTING: Final = _words("-l -n --list list show")
WITH_SUBCOMMAND: Final = _words(
    "git docker podman docker-compose npm pnpm yarn bun pip pip3 uv poetry cargo go make "
    "just mvn gradle gradlew kubectl helm terraform apt apt-get dnf yum brew pacman apk gem "
    "rails dotnet swift flutter deno node composer php bundle systemctl gh fly flyctl "
    "vercel netlify aws gcloud az ansible heroku conda mamba hermes nix zig mix stack cabal"
)
NO_PROGRAM: Final = _words(
    "cd echo export set unset true false pwd source . fi done esac for case in "
    "printf return exit local alias read wait shift trap eval umask ulimit function"
)
LABEL_ALIASES: Final = {"[": "test", "[[": "test"}


@lru_cache(maxsize=4096)
def labels(command: str) -> tuple[str, ...]:
    """What *command* runs, in order; `&` stands for running in the background.

    A label ends in `~` when the command's exit code tells only of its success
    (`pytest && git push`), and in `?` when it tells nothing (`pytest | tail`).
    """
    if ONE_COMMAND.match(command):
        only = _label(command.split())
        return (only,) if only else ()
    reading = _Reading(command[:MAX_COMMAND_CHARACTERS])
    tells = _tell(reading.parts)
    matches = [
        label + item
        for part, item in zip(reading.parts, tells, strict=True)
        if (label := _label(part.text.split()))
    ][:MAX_LABELS]
    if reading.is_background:
        matches.append(BACKGROUND)
    return tuple(matches)


def plain(label: str) -> str:
    """A label without what it says about the exit code."""
    return label[:-1] if label.endswith((SUCCESS, UNKNOWN_LABEL)) else label


class _Part:
    """A simple command: its text, what ends it, and the one behind it."""

    __slots__ = ("end", "is_inside", "text", "then")

    def __init__(self, *, is_inside: bool = False) -> None:
        self.text = ""
        self.end = ""
        self.then: _Part | None = None
        self.is_inside = is_inside  # of $(...), whose exit code nobody sees


class _Reading:
    """A command line cut into its simple commands, in one pass over its tokens."""

    def __init__(self, text: str) -> None:
        self.parts = [_Part()]
        self.is_background = False
        self._text = text
        self._part = self.parts[0]
        self._outer: list[tuple[str, _Part]] = []
        self._marks: list[str] = []
        position = 0
        while match := TOKEN.match(text, position):
            position = self._take(match)

    def _take(self, match: re.Match[str]) -> int:
        """Read one token; where the next one begins."""
        kind, token = match.lastgroup or "", match.group()
        if kind == "comment":
            text = self._part.text
            if not text or text[-1].isspace():
                return match.end()
            self._part.text += "#"
            self.is_background = False
            return match.start() + 1
        if kind == "here":
            self._marks.append(match["here"])
        elif kind == "cut":
            return self._cut(token, match.end())
        else:
            self._part.text += _bare(kind, token)
        self.is_background &= kind == "blank"
        return match.end()

    def _cut(self, cut: str, end: int) -> int:
        part = self._part
        if cut not in ("\n", ";"):
            self.is_background = cut == BACKGROUND
        if self._outer and cut == self._outer[-1][0]:
            self._part = self._outer.pop()[1]
        elif cut in ("$(", "`"):
            part.text += PLACEHOLDER
            self._outer.append((")" if cut == "$(" else "`", part))
            self._part = _Part(is_inside=True)
            self.parts.append(self._part)
        else:
            part.end, part.then = cut, _Part(is_inside=part.is_inside)
            self._part = part.then
            self.parts.append(self._part)
            while cut == "\n" and self._marks:
                end = self._behind_document(self._marks.pop(0), end)
        return end

    def _behind_document(self, mark: str, start: int) -> int:
        pattern = re.compile(rf"^[ \t]*{mark}[ \t]*$|\Z", re.MULTILINE)
        search = pattern.search(self._text, start)
        return search.end() if search else start


def _bare(kind: str, token: str) -> str:
    """A quoted plain word is that word; anything else that is quoted is no plain word."""
    if kind == "quoted":
        return token[1:-1] if PLAIN_WORD.match(token[1:-1]) else PLACEHOLDER
    if kind == "escaped":
        return PLACEHOLDER
    return " " if kind == "blank" else token


def _tell(parts: list[_Part]) -> list[str]:
    """What the exit code says about each command: it is decided by what comes behind."""
    tells: dict[int, str] = {}
    is_end: dict[int, bool] = {}
    for part in reversed(parts):
        then = part.then
        ends_here = then is None or (part.end in (";", "\n") and is_end[id(then)])
        is_end[id(part)] = ends_here and not part.text.strip()
        if part.is_inside:
            tells[id(part)] = UNKNOWN_LABEL
        elif then is None or ends_here:
            tells[id(part)] = ""
        elif part.end in TRANSPARENT:
            tells[id(part)] = tells[id(then)]
        else:
            is_chained = part.end == "&&" and tells[id(then)] != UNKNOWN_LABEL
            tells[id(part)] = SUCCESS if is_chained else UNKNOWN_LABEL
    return [tells[id(part)] for part in parts]


def _label(words: list[str]) -> str:
    words = _unwrapped(words)
    if not words:
        return ""
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe")
    program, rest = LABEL_ALIASES.get(program, program), words[1:]
    if PYTHONS.match(program):
        return _python_label(rest)
    if program in RUNNERS and rest and (RUNNERS[program] == 0 or rest[0] in RUN_WORDS):
        return _label(_without_options(rest[RUNNERS[program] :], VALUED.get(program, NONE)))
    if not PROGRAM_NAME.match(program) or program in NO_PROGRAM:
        return ""
    return _with_subcommand(program, rest) if program in WITH_SUBCOMMAND else program


def _unwrapped(words: list[str]) -> list[str]:
    while words:
        word = words[0]
        if word in WRAPPERS or word in COUNTED_WRAPPERS:
            words = _without_options(words[1:], VALUED.get(word, NONE))
            words = words[1:] if word in COUNTED_WRAPPERS else words
        elif ASSIGNMENT.match(word):
            words = words[1:]
        else:
            break
    return words


def _without_options(words: list[str], valued: frozenset[str]) -> list[str]:
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in valued else 1
    return words[position:]


def _python_label(rest: list[str]) -> str:
    position = 0
    while position < len(rest) and rest[position].startswith("-"):
        if rest[position] == "-m":
            return _label(rest[position + 1 :]) or "python"
        position += 2 if rest[position] in VALUED["python"] else 1
    return "python"


def _with_subcommand(program: str, rest: list[str]) -> str:
    if program == "node" and "--test" in rest:
        return "node --test"
    if program == "pacman" and any(word.startswith("-S") for word in rest):
        return "pacman -s"
    rest = _without_options(rest, SUBCOMMAND_VALUED)
    while rest and (rest[0].startswith("+") or rest[0].isdigit()):  # cargo +nightly, make -j 4
        rest = _without_options(rest[1:], SUBCOMMAND_VALUED)
    if not rest or not PROGRAM_NAME.match(rest[0].lower()):
        return program
    return _refined(program, rest[0].lower(), rest[1:])


def _refined(program: str, word: str, follows: list[str]) -> str:
    """The subcommand, with what tells it from others of the same name."""
    if word in RUN_WORDS and program in SCRIPT_RUNNERS:
        script = _without_options(follows, NONE)
        if script:
            return f"{program} run {_name(script[0].partition(':')[0])}".rstrip()
    if program == "uv" and word == "pip" and follows:
        return f"uv pip {_name(follows[0])}".rstrip()
    first = follows[0] if follows else ""
    is_list = first in LISTING or (word == "tag" and not first)
    if program == "git" and word in ("tag", "stash") and is_list:
        return f"git {word} list"
    return f"{program} {word}"


def _name(word: str) -> str:
    """A word that can be a name; nothing where it cannot."""
    name = word.lower()
    return name if PROGRAM_NAME.match(name) else ""


TESTS: Final = _words(
    "pytest py.test unittest tox nox vitest jest mocha ava playwright cypress rspec phpunit "
    "ctest karma behave cucumber bats go-test tape"
) | frozenset(
    f"{program} {word}"
    for program, words in {
        "npm": "test t",
        "pnpm": "test",
        "yarn": "test",
        "bun": "test",
        "deno": "test",
        "cargo": "test nextest",
        "go": "test",
        "make": "test check tests",
        "just": "test check",
        "mvn": "test verify",
        "gradle": "test check",
        "gradlew": "test check",
        "dotnet": "test",
        "swift": "test",
        "flutter": "test",
        "rails": "test",
        "mix": "test",
        "zig": "test",
        "stack": "test",
        "cabal": "test",
        "node": "--test",
        "npm run": "test unit e2e",
        "pnpm run": "test unit e2e",
        "yarn run": "test unit e2e",
        "bun run": "test unit e2e",
    }.items()
    for word in words.split()
)
INSTALLS: Final = frozenset(
    f"{program} {word}"
    for program, words in {
        "pip": "install",
        "pip3": "install",
        "uv": "add sync",
        "uv pip": "install sync",
        "poetry": "add install",
        "npm": "install i add ci",
        "pnpm": "install i add",
        "yarn": "add install",
        "bun": "add install",
        "cargo": "add install",
        "go": "get install",
        "apt": "install",
        "apt-get": "install",
        "dnf": "install",
        "yum": "install",
        "brew": "install",
        "pacman": "-s",
        "apk": "add",
        "gem": "install",
        "composer": "require install",
        "conda": "install",
        "mamba": "install",
        "dotnet": "add",
    }.items()
    for word in words.split()
)
BUILDS: Final = _words(
    "make cmake ninja tsc vite webpack esbuild gcc g++ clang javac rustc meson bazel"
) | frozenset(
    f"{program} {word}"
    for program, words in {
        "npm run": "build",
        "pnpm run": "build",
        "yarn run": "build",
        "yarn": "build",
        "bun": "build",
        "bun run": "build",
        "cargo": "build",
        "go": "build",
        "make": "build all",
        "just": "build",
        "mvn": "package install compile",
        "gradle": "build assemble",
        "gradlew": "build assemble",
        "docker": "build",
        "dotnet": "build publish",
        "swift": "build",
        "flutter": "build",
        "zig": "build",
        "uv": "build",
        "poetry": "build",
    }.items()
    for word in words.split()
)
CHECKS: Final = (
    _words(
        "ruff mypy pyright flake8 pylint black isort eslint prettier biome clippy shellcheck "
        "golangci-lint rubocop stylelint hadolint pre-commit tflint yamllint clang-tidy gofmt"
    )
    | {"cargo clippy", "cargo fmt", "go vet", "make lint", "npm run lint", "pnpm run lint"}
    | {
        "yarn lint",
        "yarn run lint",
    }
)
CONTAINERS: Final = frozenset({"docker", "podman", "docker-compose"})
DEPLOYERS: Final = _words(
    "kubectl helm terraform tofu pulumi fly flyctl vercel netlify heroku ansible ansible-playbook "
    " aws gcloud az wrangler serverless"
)
DATABASES: Final = _words("psql sqlite3 mysql mariadb mongosh redis-cli duckdb sqlcmd")
REQUESTERS: Final = frozenset({"curl", "wget", "http", "https", "xh", "httpie"})
REMOTES: Final = frozenset({"ssh", "scp", "rsync", "sftp", "mosh"})
MERGES: Final = frozenset({"git merge", "git rebase", "git cherry-pick"})
RESCUES: Final = frozenset({"git revert", "git reset", "git restore", "git stash", "git bisect"})
# Programs whose exit code 1 is an answer: nothing found, or not the same.
ANSWERING: Final = _words("grep egrep fgrep rg ag diff cmp pgrep which test")
