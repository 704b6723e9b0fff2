"""Finds the programs that a shell command runs.

A command line is split into simple commands at `&&`, `||`, `;`, `|`, `&` and line ends,
outside quotes, comments and here-documents. Each has one label: its program, with the
subcommand for programs such as git and docker (`git commit`, `docker run`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Final

MAX_COMMAND_CHARACTERS: Final = 20_000
MAX_LABELS: Final = 12
BACKGROUND_LABEL: Final = "&"
SUCCESS_ONLY_MARK: Final = "~"
UNKNOWN_OUTCOME_MARK: Final = "?"
QUOTES: Final = "'\""
PLACEHOLDER: Final = "\x01"  # replaces a word with quotes, escapes or substitutions

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
# A command without separators and quotes.
SIMPLE_COMMAND: Final = re.compile(r"[A-Za-z0-9_./:=@%+, -]{0,2000}\Z")
# A command with quotes and separators, and nothing that needs the parser.
FLAT_COMMAND: Final = re.compile(
    r"""(?:[A-Za-z0-9_./:=@%+,~^\[\]*?!>\ \t-]++|(?<=>)&\d|'[^']*+'|"[^"\\]*+"|&&|[;|])*\Z"""
)
FLAT_TOKEN: Final = re.compile(r"""('[^']*+'|"[^"]*+"|&&|\|\||[;|])""")
GROUPING_CHARACTERS: Final = frozenset("(){}")
PLAIN_WORD: Final = re.compile(r"[\w./:@+-]+$")
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
PROGRAM_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_.+-]{0,23}$")
PYTHON_PROGRAM: Final = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?$")


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(text: str) -> dict[str, frozenset[str]]:
    """Names with their words: `apk: add; go: get install`."""
    rows = (row.partition(":") for row in text.split(";"))
    return {name.strip(): _word_set(words) for name, _, words in rows}


def _subcommands(text: str) -> frozenset[str]:
    return frozenset(f"{name} {word}" for name, words in _table(text).items() for word in words)


# Words that precede a program.
WRAPPERS: Final = _word_set(
    "sudo doas env time nohup nice exec command builtin xargs then else do if while until "
    "elif ! watch stdbuf setsid ionice caffeinate"
)
# Programs that run another program after one argument: `timeout 60 make`.
ARGUMENT_WRAPPERS: Final = _word_set("timeout gtimeout")
# Options that are followed by a value.
OPTIONS_WITH_VALUE: Final = _table(
    "sudo: -u -g -h -p -C; doas: -u; nice: -n; env: -u -C; xargs: -n -I -P -L -d; timeout: -s -k; "
    "gtimeout: -s -k; ionice: -c -n -p; watch: -n; exec: -a; stdbuf: -i -o -e; time: -f -o; uv: "
    "--with --python -p --extra --group --project --directory --env-file; python: -X -W"
)
NO_OPTIONS: Final[frozenset[str]] = frozenset()
SUBCOMMAND_OPTIONS_WITH_VALUE: Final = _word_set("-C -c -f -n --prefix")
# Programs that run another program, and the number of words before it.
RUNNERS: Final = dict.fromkeys(_word_set("npx bunx pnpx uvx"), 0) | dict.fromkeys(
    _word_set("uv poetry pdm pipenv rye hatch bundle pixi"), 1
)
SCRIPT_RUNNERS: Final = _word_set("npm pnpm yarn bun")
RUN_WORDS: Final = _word_set("run exec")
LIST_ARGUMENTS: Final = _word_set("-l -n --list list show")
SUBCOMMAND_PROGRAMS: Final = _word_set(
    "git docker podman docker-compose npm pnpm yarn bun pip pip3 uv poetry cargo go make "
    "just mvn gradle gradlew kubectl helm terraform apt apt-get dnf yum brew pacman apk gem "
    "rails dotnet swift flutter deno node composer php bundle systemctl gh fly flyctl "
    "vercel netlify aws gcloud az ansible heroku conda mamba hermes nix zig mix stack cabal"
)
SHELL_KEYWORDS: Final = _word_set(
    "cd echo export set unset true false pwd source . fi done esac for case in "
    "printf return exit local alias read wait shift trap eval umask ulimit function"
)
LABEL_ALIASES: Final = {"[": "test", "[[": "test"}


@lru_cache(maxsize=4096)
def command_labels(command: str) -> tuple[str, ...]:
    """Labels of the programs that *command* runs, in order; `&` means in the background.

    A label ends with `~` if the exit code of the line only proves its success
    (`pytest && git push`), and with `?` if it proves nothing (`pytest | tail`).
    """
    if SIMPLE_COMMAND.match(command):
        label = _label(command.split())
        return (label,) if label else ()
    if len(command) <= MAX_COMMAND_CHARACTERS and FLAT_COMMAND.match(command):
        return _flat_labels(command)
    parser = _CommandParser(command[:MAX_COMMAND_CHARACTERS])
    marks = _exit_code_marks(parser.parts)
    labels = [
        label + mark
        for part, mark in zip(parser.parts, marks, strict=True)
        if (label := _label(part.text.split()))
    ][:MAX_LABELS]
    if parser.is_background:
        labels.append(BACKGROUND_LABEL)
    return tuple(labels)


def _flat_labels(command: str) -> tuple[str, ...]:
    """The labels of a command without groups, substitutions and background jobs."""
    texts, separators = [""], []
    for number, token in enumerate(FLAT_TOKEN.split(command)):
        if number % 2 == 0:
            texts[-1] += token
        elif token[0] in QUOTES:
            texts[-1] += _unquote("quoted", token)
        else:
            separators.append(token)
            texts.append("")
    mark, is_end = "", not texts[-1].strip()
    marks = [mark]
    for text, separator in zip(texts[-2::-1], reversed(separators), strict=True):
        ends_here = separator == ";" and is_end
        is_end = ends_here and not text.strip()
        if ends_here:
            mark = ""
        else:
            is_chained = separator == "&&" and mark != UNKNOWN_OUTCOME_MARK
            mark = SUCCESS_ONLY_MARK if is_chained else UNKNOWN_OUTCOME_MARK
        marks.append(mark)
    labels = (
        label + mark
        for text, mark in zip(texts, reversed(marks), strict=True)
        if (label := _label(text.split()))
    )
    return tuple(islice(labels, MAX_LABELS))


def plain_label(label: str) -> str:
    """A label without its exit-code mark."""
    return label[:-1] if label.endswith((SUCCESS_ONLY_MARK, UNKNOWN_OUTCOME_MARK)) else label


class _SimpleCommand:
    """A simple command: its text, its separator, and the following command."""

    __slots__ = ("end", "following", "is_substitution", "text")

    def __init__(self, *, is_substitution: bool = False) -> None:
        self.text = ""
        self.end = ""
        self.following: _SimpleCommand | None = None
        self.is_substitution = is_substitution  # inside $(...), where the exit code is lost


class _CommandParser:
    """Splits a command line into simple commands, in one pass over its tokens."""

    def __init__(self, text: str) -> None:
        self.parts = [_SimpleCommand()]
        self.is_background = False
        self._text = text
        self._part = self.parts[0]
        self._outer: list[tuple[str, _SimpleCommand]] = []
        self._terminators: list[str] = []
        position = 0
        while match := TOKEN.match(text, position):
            position = self._read_token(match)

    def _read_token(self, match: re.Match[str]) -> int:
        """Read a token; returns the position of the next one."""
        kind, token = match.lastgroup or "", match.group()
        if kind == "comment":
            text = self._part.text
            if not text or text[-1].isspace():
                return match.end()
            self._part.text += "#"
            self.is_background = False
            return match.start() + 1
        if kind == "here":
            self._terminators.append(match["here"])
        elif kind == "cut":
            return self._cut(token, match.end())
        else:
            self._part.text += _unquote(kind, token)
        self.is_background &= kind == "blank"
        return match.end()

    def _cut(self, cut: str, end: int) -> int:
        part = self._part
        if cut not in ("\n", ";"):
            self.is_background = cut == BACKGROUND_LABEL
        if self._outer and cut == self._outer[-1][0]:
            self._part = self._outer.pop()[1]
        elif cut in ("$(", "`"):
            part.text += PLACEHOLDER
            self._outer.append((")" if cut == "$(" else "`", part))
            self._part = _SimpleCommand(is_substitution=True)
            self.parts.append(self._part)
        else:
            part.end, part.following = cut, _SimpleCommand(is_substitution=part.is_substitution)
            self._part = part.following
            self.parts.append(self._part)
            while cut == "\n" and self._terminators:
                end = self._skip_here_document(self._terminators.pop(0), end)
        return end

    def _skip_here_document(self, terminator: str, start: int) -> int:
        pattern = re.compile(rf"^[ \t]*{terminator}[ \t]*$|\Z", re.MULTILINE)
        search = pattern.search(self._text, start)
        return search.end() if search else start


def _unquote(kind: str, token: str) -> str:
    """A quoted plain word without quotes; a placeholder for other quoted texts."""
    if kind == "quoted":
        return token[1:-1] if PLAIN_WORD.match(token[1:-1]) else PLACEHOLDER
    if kind == "escaped":
        return PLACEHOLDER
    return " " if kind == "blank" else token


def _exit_code_marks(parts: list[_SimpleCommand]) -> list[str]:
    """The exit-code mark of each command, which depends on the following commands."""
    marks: dict[int, str] = {}
    is_end: dict[int, bool] = {}
    for part in reversed(parts):
        following = part.following
        ends_here = following is None or (part.end in (";", "\n") and is_end[id(following)])
        is_end[id(part)] = ends_here and not part.text.strip()
        if part.is_substitution:
            marks[id(part)] = UNKNOWN_OUTCOME_MARK
        elif following is None or ends_here:
            marks[id(part)] = ""
        elif part.end in GROUPING_CHARACTERS:
            marks[id(part)] = marks[id(following)]
        else:
            is_chained = part.end == "&&" and marks[id(following)] != UNKNOWN_OUTCOME_MARK
            marks[id(part)] = SUCCESS_ONLY_MARK if is_chained else UNKNOWN_OUTCOME_MARK
    return [marks[id(part)] for part in parts]


def _label(words: list[str]) -> str:
    words = _without_wrappers(words)
    if not words:
        return ""
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe")
    program, rest = LABEL_ALIASES.get(program, program), words[1:]
    if PYTHON_PROGRAM.match(program):
        return _python_label(rest)
    if program in RUNNERS and rest and (RUNNERS[program] == 0 or rest[0] in RUN_WORDS):
        return _label(
            _without_options(rest[RUNNERS[program] :], OPTIONS_WITH_VALUE.get(program, NO_OPTIONS))
        )
    if not PROGRAM_NAME.match(program) or program in SHELL_KEYWORDS:
        return ""
    return _with_subcommand(program, rest) if program in SUBCOMMAND_PROGRAMS else program


def _without_wrappers(words: list[str]) -> list[str]:
    while words:
        word = words[0]
        if word in WRAPPERS or word in ARGUMENT_WRAPPERS:
            words = _without_options(words[1:], OPTIONS_WITH_VALUE.get(word, NO_OPTIONS))
            words = words[1:] if word in ARGUMENT_WRAPPERS else words
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
        position += 2 if rest[position] in OPTIONS_WITH_VALUE["python"] else 1
    return "python"


def _with_subcommand(program: str, rest: list[str]) -> str:
    if program == "node" and "--test" in rest:
        return "node --test"
    if program == "pacman" and any(word.startswith("-S") for word in rest):
        return "pacman -s"
    rest = _without_options(rest, SUBCOMMAND_OPTIONS_WITH_VALUE)
    while rest and (rest[0].startswith("+") or rest[0].isdigit()):  # cargo +nightly, make -j 4
        rest = _without_options(rest[1:], SUBCOMMAND_OPTIONS_WITH_VALUE)
    if not rest or not PROGRAM_NAME.match(rest[0].lower()):
        return program
    return _subcommand_label(program, rest[0].lower(), rest[1:])


def _subcommand_label(program: str, word: str, follows: list[str]) -> str:
    """The label of a subcommand, with a second word for ambiguous subcommands."""
    if word in RUN_WORDS and program in SCRIPT_RUNNERS:
        script = _without_options(follows, NO_OPTIONS)
        if script:
            return f"{program} run {_name(script[0].partition(':')[0])}".rstrip()
    if program == "uv" and word == "pip" and follows:
        return f"uv pip {_name(follows[0])}".rstrip()
    first = follows[0] if follows else ""
    is_list = first in LIST_ARGUMENTS or (word == "tag" and not first)
    if program == "git" and word in ("tag", "stash") and is_list:
        return f"git {word} list"
    return f"{program} {word}"


def _name(word: str) -> str:
    """The word in lower case if it is a valid name, else ''."""
    name = word.lower()
    return name if PROGRAM_NAME.match(name) else ""


TEST_COMMANDS: Final = _word_set(
    "pytest py.test unittest tox nox vitest jest mocha ava playwright cypress rspec phpunit "
    "ctest karma behave cucumber bats go-test tape"
) | _subcommands(
    "npm: test t; pnpm: test; yarn: test; bun: test; deno: test; cargo: test nextest; go: test; "
    "make: test check tests; just: test check; mvn: test verify; gradle: test check; gradlew: "
    "test check; dotnet: test; swift: test; flutter: test; rails: test; mix: test; zig: test; "
    "stack: test; cabal: test; node: --test; npm run: test unit e2e; pnpm run: test unit e2e; "
    "yarn run: test unit e2e; bun run: test unit e2e"
)
INSTALL_COMMANDS: Final = _subcommands(
    "pip: install; pip3: install; uv: add sync; uv pip: install sync; poetry: add install; npm: "
    "install i add ci; pnpm: install i add; yarn: add install; bun: add install; cargo: add "
    "install; go: get install; apt: install; apt-get: install; dnf: install; yum: install; brew: "
    "install; pacman: -s; apk: add; gem: install; composer: require install; conda: install; "
    "mamba: install; dotnet: add"
)
BUILD_COMMANDS: Final = _word_set(
    "make cmake ninja tsc vite webpack esbuild gcc g++ clang javac rustc meson bazel"
) | _subcommands(
    "npm run: build; pnpm run: build; yarn run: build; yarn: build; bun: build; bun run: build; "
    "cargo: build; go: build; make: build all; just: build; mvn: package install compile; gradle: "
    "build assemble; gradlew: build assemble; docker: build; dotnet: build publish; swift: build; "
    "flutter: build; zig: build; uv: build; poetry: build"
)
CHECK_COMMANDS: Final = _word_set(
    "ruff mypy pyright flake8 pylint black isort eslint prettier biome clippy shellcheck "
    "golangci-lint rubocop stylelint hadolint pre-commit tflint yamllint clang-tidy gofmt"
) | _subcommands(
    "cargo: clippy fmt; go: vet; make: lint; npm run: lint; pnpm run: lint; yarn: lint; "
    "yarn run: lint"
)
CONTAINER_PROGRAMS: Final = frozenset({"docker", "podman", "docker-compose"})
DEPLOY_PROGRAMS: Final = _word_set(
    "kubectl helm terraform tofu pulumi fly flyctl vercel netlify heroku ansible ansible-playbook "
    " aws gcloud az wrangler serverless"
)
DATABASE_PROGRAMS: Final = _word_set("psql sqlite3 mysql mariadb mongosh redis-cli duckdb sqlcmd")
HTTP_PROGRAMS: Final = frozenset({"curl", "wget", "http", "https", "xh", "httpie"})
REMOTE_PROGRAMS: Final = frozenset({"ssh", "scp", "rsync", "sftp", "mosh"})
MERGE_COMMANDS: Final = frozenset({"git merge", "git rebase", "git cherry-pick"})
GIT_RESCUE_COMMANDS: Final = frozenset(
    {"git revert", "git reset", "git restore", "git stash", "git bisect"}
)
# Programs whose exit code 1 means "not found" or "different", not a failure.
ANSWER_PROGRAMS: Final = _word_set("grep egrep fgrep rg ag diff cmp pgrep which test")
