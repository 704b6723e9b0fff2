"""What commands of all agents did: where they ran, how they ended, and the error they printed."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.terminal_text import clean
from hermes_state.calls.edits import SCRIPT_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_core.json_values import JsonObject
    from hermes_state.calls.history import RecordedCall


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


FOLDER_KEYS: Final = ("cwd", "workdir", "working_directory", "directory", "dir_path")
OUTPUT_KEYS: Final = ("output", "error", "stdout", "stderr")
EXIT_KEYS: Final = ("exit_code", "returncode", "exitCode")
MAX_COMMAND: Final = 4_000  # characters; longer ones are scripts
MAX_OUTPUT: Final = 60_000  # characters that are read at either end
MAX_LINE: Final = 300
KEY_LINES: Final = 3  # that identify an error
SHELLS: Final = re.compile(
    r"(?:^|[_.:/-])(?:bash|shell|sh|terminal|exec|exec_?command|run_?command|execute_?command"
    r"|run_?shell_?command|local_?shell|run_?terminal_?cmd|run_in_terminal|developer__shell)$",
    re.IGNORECASE,
)
# Lines with which agents surround the output of a command.
WRAPPING: Final = re.compile(
    r"(?:Chunk ID|Wall time|Original token count|Total output lines|Command|Directory|Signal"
    r"|Process Group PGID|Background PIDs): .*|Output:|Error: \(none\)|</?untrusted_context>"
    r"|<shellId: .*>|\(?(?:Command|Process) exited with code -?\d+\)?|Exit [Cc]ode:? -?\d+",
)
EXIT_LINE: Final = re.compile(
    r"^\W{0,3}(?:<shellId: \w+ )?(?:(?:command|process) )?(?:completed )?(?:with )?exit(?:ed)?"
    r"(?: with)?(?: code| status)?[ :=]+(-?\d{1,5})\W{0,3}$",
    re.MULTILINE | re.IGNORECASE,
)
EXIT_EDGE: Final = 200  # characters at either end in which agents state the exit code
NOT_RUN: Final = re.compile(
    r"aborted by user|request interrupted|user (?:doesn't|does not) want|user rejected"
    r"|injection detected|^Interrupted before|sandbox denied",
    re.IGNORECASE,
)
ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
TOKEN: Final = re.compile(r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s'\"\\])+")
FOLDER_PREFIX: Final = re.compile(r"cd\s+((?:'[^']*'|\"[^\"]*\"|\\.|[^\s;&|'\"\\])+)\s*(?:&&|;)\s*")
TAIL: Final = re.compile(
    r"\s*(?:\d?>{1,2}\s*(?:&\d|/dev/null)|&>\s*/dev/null|\|\s*(?:tail|head|cat)(?:\s+-?[\w-]+)*)\s*$"
)
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
WRAPPERS: Final = word_set("sudo doas env time nohup nice exec command npx bunx uvx pnpx")
RUNNERS: Final = word_set("uv poetry pdm pipenv rye hatch pixi")  # `uv run PROGRAM`
PYTHON: Final = re.compile(r"python[\d.]*$")
NOISE: Final = word_set("-v -vv -vvv --verbose -q --quiet --silent -s --debug --color --no-color")
ASKING: Final = word_set(
    "--help -h --version -V --dry-run --list --collect-only --check --no-run --noEmit"
)
SUBCOMMANDS: Final = word_set(
    "git docker podman npm pnpm yarn bun pip pip3 uv poetry cargo go make just mvn gradle gradlew "
    "kubectl helm terraform apt apt-get dnf yum brew pacman apk gem rails dotnet swift flutter "
    "deno composer bundle systemctl gh fly vercel netlify aws gcloud az heroku conda mix"
)
TESTS: Final = re.compile(
    r"(?:pytest|py\.test|unittest|tox|nox|vitest|jest|mocha|rspec|phpunit|ctest|playwright|ruff|mypy"
    r"|pyright|flake8|pylint|eslint|tsc|shellcheck"
    r"|(?:npm|pnpm|yarn|bun|cargo|go|make|just|mvn|gradle|gradlew|dotnet|mix)"
    r" (?:run )?(?:t|test|tests|check|verify|lint|vet|clippy)\b.*)$"
)
# Exit code 1 of these is an answer.
ANSWERING: Final = word_set("grep egrep fgrep rg ag diff cmp pgrep which test [ [[ command type")
# They change nothing that another command could need.
READING: Final = ANSWERING | word_set(
    "ls cat head tail less find fd pwd echo printf wc stat file env printenv ps tree du df whoami "
    "uname date sleep true jq awk nl sort uniq column hexdump xxd md5sum sha256sum man id "
    "hostname lsof netstat ss top free git"
)
CHANGING_GIT: Final = frozenset(
    f"git {name}"
    for name in word_set(
        "submodule config lfs checkout switch pull fetch init stash merge rebase reset restore "
        "clean remote clone apply"
    )
)

ERROR_WORDS: Final = re.compile(
    r"\b(?:error|exception|fatal|panic(?:ked)?|fail(?:ed|ure|s)?|cannot|can't|could not|couldn't"
    r"|unable|not found|no such|not a|denied|refused|undefined|unresolved|unknown|invalid|missing"
    r"|unexpected|unrecognized|not recognized|conflict(?:s|ing)?|timed out|already|rejected"
    r"|not installed|no module|no rule|required"
    r"|(?-i:[A-Z]\w*(?:Error|Exception)|E[A-Z]{4,}))\b|ERR!",
    re.IGNORECASE,
)
RAISED: Final = re.compile(
    r"(?:E\s+)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Warning)\b"
)
TRACEBACK: Final = "Traceback (most recent call last):"
# Lines that many different failures have, after numbers and folders were removed.
GENERIC: Final = re.compile(
    r"traceback \(most recent call last\):?|.*complete log of this run.*"
    r"|npm (?:err!|error)\s*(?:errno|path|code|syscall|command|a complete|lifecycle)?\s*[#-]*"
    r"|make(?:\[#\])?: .*error #(?: \(ignored\))?|(?:error: )?command failed.*"
    r"|error: process completed with exit code #\.?|=+ failures =+|=+ errors =+"
    r"|[=\s]*(?:# (?:failed|passed|skipped|errors?|warnings?),? ?)+(?:in #\w*)?[=\s]*"
    r"|found # errors?.*|exit(?:ed)?(?: with)?(?: code| status):? #"
    r"|(?:tests?|test files?|test suites?):?\s.*# failed.*"
    r"|errors?:?|failed|failure|fatal|\w*error: *#?|warning: .*|deprecationwarning.*"
    r"|error:? (?:aborting due to|could not compile).*|assertionerror"
    r"|killed|terminated|aborted|command timed out.*",
    re.IGNORECASE,
)
NUMBER: Final = re.compile(
    r"(?<![A-Za-z_])\d[\d.,:]*(?:ms|s|m|h|kb|mb|gb|b|%)?(?![A-Za-z_])", re.IGNORECASE
)
# In lines that compare values, the values tell one failure of a test from another.
COMPARING: Final = re.compile(r"\b(?:assert\w*|want|received|actual)\b|[!=]=", re.IGNORECASE)
NORMALIZED: Final = (
    (re.compile(r"\b(https?|ssh|git|wss?)://(?:[^\s/@]*@)?([\w.-]+)[^\s'\"`)>,]*"), r"\1:\2"),
    (
        re.compile(
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE
        ),
        "#",
    ),
    (
        re.compile(
            r"\d{4}-\d\d-\d\d(?:[T _-]?\d\d[:_-]\d\d(?:[:_-]\d\d)?[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)?"
        ),
        "#",
    ),
    (re.compile(r"(?:[A-Za-z]:)?(?:[~.\w@+-]*[\\/])+(?=[\w.@+-]*)"), ""),  # folders
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "#"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "#"),
    (re.compile(r"\b(?:tmp|temp)[\w-]*\d[\w-]*", re.IGNORECASE), "#"),
    (NUMBER, "#"),
    (re.compile(r"[\u2018\u2019\u201c\u201d`\"]"), "'"),
    (re.compile(r"\s+"), " "),
)


class ErrorText(NamedTuple):
    """What identifies an error: a digest of some of its lines, and of the first of them."""

    fingerprint: str
    line: str  # the digest of the first line
    text: str  # the first line, as it was printed


class CommandRun(NamedTuple):
    """A command, and how it ended: None for neither a proven success nor a proven failure."""

    text: str  # without what does not change what it does
    folder: str
    has_worked: bool | None
    exit_code: int | None
    error: ErrorText | None

    @property
    def parts(self) -> list[CommandWords]:
        """The commands of a chain."""
        return [words for part in _parts(self.text) if (words := command_words(part)).program]

    @property
    def is_failure(self) -> bool:
        """Whether it failed with an error that can be recognized."""
        return self.has_worked is False and self.error is not None


class CommandWords(NamedTuple):
    """The words of a simple command."""

    program: str
    words: tuple[str, ...]  # after the program
    start: tuple[str, ...] = ()  # before it: variables, `sudo`, `uv run`

    @property
    def label(self) -> str:
        """The program, with its subcommand if it has many."""
        if self.program in SUBCOMMANDS and self.operands:
            first, *more = self.operands
            return " ".join([self.program, first, *(more[:1] if first == "run" else ())])
        return self.program

    @property
    def operands(self) -> tuple[str, ...]:
        """The words that are neither options nor numbers."""
        return tuple(word for word in self.words if not word.startswith("-") and not word.isdigit())

    @property
    def options(self) -> tuple[str, ...]:
        """The options that matter."""
        return tuple(word for word in self.words if word.startswith("-") and word not in NOISE)

    @property
    def is_reading(self) -> bool:
        """Whether it is known to change nothing that another command needs."""
        if not ASKING.isdisjoint(self.words):
            return True
        return self.program in READING and self.label not in CHANGING_GIT


def digest(text: str) -> str:
    """The digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=10).hexdigest()


def command_run(call: RecordedCall, folder: str) -> CommandRun | None:
    """The command of a call, in the folder of its conversation; None for other calls."""
    script = _script(call.arguments) if SHELLS.search(call.name) else ""
    if not script or len(script) > MAX_COMMAND or call.result_id is None:
        return None
    given = next((call.arguments[key] for key in FOLDER_KEYS if call.arguments.get(key)), "")
    place = joined(folder, given if isinstance(given, str) else "")
    text, place = _without_folder(script, place)
    text, is_piped = _without_tail(text)
    output, code, is_error = _output_of(call.result)
    if NOT_RUN.search(output[:EXIT_EDGE]):
        return CommandRun(text, place, None, code, None)
    if code not in (None, 0):
        parts = [command_words(part) for part in _parts(text)]
        is_answer = code == 1 and bool(parts) and parts[-1].program in ANSWERING
        error = None if is_answer else find_error(output)
        return CommandRun(text, place, None if error is None else False, code, error)
    is_proven = not is_error and not _hides_failures(text)
    if is_proven and is_piped:
        is_proven = not any(ERROR_WORDS.search(line) for line in _lines(output))
    return CommandRun(text, place, True if is_proven else None, code, None)


def joined(folder: str, path: str) -> str:
    """A path in a folder, without links and `..`."""
    path = path.replace("\\", "/").strip()
    joint = posixpath.join(folder.replace("\\", "/"), path) if path else folder
    return posixpath.normpath(joint) if joint else ""


def _script(arguments: JsonObject) -> str:
    for key in SCRIPT_KEYS:
        value = arguments.get(key)
        if isinstance(value, list) and value:
            words = [str(word) for word in value]
            is_shell = len(words) == 3 and words[1].startswith("-") and words[1].endswith("c")
            return words[2].strip() if is_shell else " ".join(words)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _without_folder(script: str, folder: str) -> tuple[str, str]:
    while found := FOLDER_PREFIX.match(script):
        script, folder = script[found.end() :], joined(folder, found[1].strip("'\""))
    return script, folder


def _without_tail(script: str) -> tuple[str, bool]:
    """A command without redirections of its messages; whether its exit code is lost."""
    is_piped = False
    while found := TAIL.search(script):
        is_piped = is_piped or "|" in found[0]
        script = script[: found.start()]
    return " ".join(script.split()) if "\n" not in script else script, is_piped


def _hides_failures(script: str) -> bool:
    """Whether the exit code of a script may be that of something else."""
    plain = re.sub(r"&&|\d?>&\d", " ", QUOTED.sub("", script))
    return re.search(r"[|;&\n]", plain) is not None


def _parts(script: str) -> list[str]:
    parts, last = [""], 0
    plain = QUOTED.sub(lambda found: "x" * len(found[0]), script)
    for found in re.finditer(r"&&|\|\||[;|\n]", plain):
        parts[-1] = script[last : found.start()]
        parts.append("")
        last = found.end()
    parts[-1] = script[last:]
    return [part.strip() for part in parts if part.strip()]


def command_words(text: str) -> CommandWords:
    """The program and its words, without what only starts it."""
    every = [found[0] for found in TOKEN.finditer(text)]
    words = [*every]
    while words and (
        words[0] in WRAPPERS or ASSIGNMENT.match(words[0]) or words[0] in ("-y", "--yes")
    ):
        words.pop(0)
    if len(words) > 2 and words[0] in RUNNERS and words[1] == "run":
        words = words[2:]
    if len(words) > 2 and PYTHON.match(words[0]) and words[1] == "-m":
        words = words[2:]
    program = posixpath.basename(words[0].strip("'\"")) if words else ""
    rest = tuple(word.strip("'\"") for word in words[1:])
    return CommandWords(program, rest, tuple(every[: len(every) - len(words)]))


def labels(command: str) -> frozenset[str]:
    """The programs of a command, with their subcommands."""
    return frozenset(command_words(part).label for part in _parts(command))


# Results


def _output_of(result: str) -> tuple[str, int | None, bool]:
    """The output, the exit code, and whether the agent calls it an error."""
    if result.lstrip().startswith("{"):
        try:
            document = json.loads(result)
        except ValueError:
            document = None
        if isinstance(document, dict) and any(
            key in document for key in (*OUTPUT_KEYS, *EXIT_KEYS)
        ):
            texts = [value for key in OUTPUT_KEYS if isinstance(value := document.get(key), str)]
            output = "\n".join(texts)
            code = next((c for key in EXIT_KEYS if isinstance(c := document.get(key), int)), None)
            return (
                output,
                _stated_code(output) if code is None else code,
                bool(document.get("error")),
            )
    return result, _stated_code(result), False


def _stated_code(output: str) -> int | None:
    """The exit code that an agent wrote before or after the output."""
    edges = output
    if len(output) > 2 * EXIT_EDGE:
        head, tail = output[:EXIT_EDGE].rpartition("\n")[0], output[-EXIT_EDGE:].partition("\n")[2]
        edges = f"{head}\n{tail}"
    found = EXIT_LINE.search(edges)
    return int(found[1]) if found else None


def _lines(output: str) -> Iterator[str]:
    if len(output) > 2 * MAX_OUTPUT:
        output = f"{output[:MAX_OUTPUT]}\n{output[-MAX_OUTPUT:]}"
    for line in ANSI.sub("", output).splitlines():
        line = line.removeprefix("Output: ").strip()  # noqa: PLW2901 - the line as printed
        if line and not WRAPPING.fullmatch(line):
            yield line[:MAX_LINE]


def normalized(line: str) -> str:
    """A line without what differs between two occurrences of an error."""
    keeps_numbers = COMPARING.search(line) is not None
    for pattern, replacement in NORMALIZED:
        if pattern is not NUMBER or not keeps_numbers:
            line = pattern.sub(replacement, line)
    return line.strip().casefold()


def find_error(output: str) -> ErrorText | None:
    """What identifies the error in an output; None if nothing does."""
    lines = list(_lines(output))
    found: dict[str, str] = {}
    raised = _raised(lines) if TRACEBACK in lines else []
    telling = [*raised, *(line for line in lines if ERROR_WORDS.search(line))]
    for line in telling or lines[-1:]:
        key = normalized(line)
        if re.search(r"[^\W\d_]{3}.*[^\W\d_]{2}", key) and not GENERIC.fullmatch(key):
            found.setdefault(key, line)
        if len(found) == KEY_LINES:
            break
    if not found:
        return None
    keys = list(found)
    return ErrorText(digest("\n".join(keys)), digest(keys[0]), clean(found[keys[0]]))


def _raised(lines: list[str]) -> list[str]:
    """The last exception of a traceback, and where it was raised."""
    raised = [line for line in lines if RAISED.match(line)][-1:]
    where = [line for line in lines if line.startswith('File "')][-1:]
    is_same_anywhere = any("No module" in line for line in raised)
    return raised if is_same_anywhere else [*raised, *where]


def error_lines(text: str) -> list[str]:
    """The digests of all lines of a text that could be the first of an error."""
    return list(dict.fromkeys(digest(normalized(line)) for line in _lines(text)))
