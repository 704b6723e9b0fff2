"""One command line reviewed: everything that is found in it and in what it runs in turn."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.permissions import forbidden, path_zones, remote_effects, risks
from hermes_agent.permissions.file_access import FileAccess
from hermes_agent.permissions.nested_commands import (
    INTERPRETERS,
    SHELLS,
    inner_commands,
    inner_script,
)
from hermes_agent.permissions.path_zones import possible_paths
from hermes_agent.permissions.shell_script import KEYWORDS, ShellParser, is_computed_name
from hermes_agent.permissions.shell_words import UNKNOWN_PART, word_set
from hermes_agent.permissions.verdicts import Level, RiskFinding
from hermes_core.system_programs import program_on_path, system_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_agent.permissions.path_zones import PathContext
    from hermes_agent.permissions.shell_script import ShellCommand, ShellScript

# Exact forms of programs that only read: their options, and how many operands they may have.
# A command in one of these forms runs unasked where the operating system enforces nothing, so an
# option is listed only if it starts no program and writes no file.
NO_OPTIONS: Final = re.compile(r"(?!)")
READ_FORMS: Final[dict[str, tuple[re.Pattern[str], int]]] = {
    name: (re.compile(options), operands)
    for names, options, operands in (
        ("true false pwd whoami nproc arch", r"(?!)", 0),
        ("basename dirname cd tac rev seq", r"(?!)", 99),
        ("echo", r"-[neE]+", 999),
        ("printf", r"(?!)", 999),
        ("uname", r"-[asnrvmpio]+", 0),
        ("id", r"-[ugnGr]+", 1),
        ("date", r"-u|-I\w*", 0),
        ("which", r"-a", 99),
        ("type", r"-[aptP]+", 99),
        ("ls", r"-[1AaFGHLRSXcdfghiklnopqrstux]+|--color=never", 99),
        ("cat", r"-[AbEensTtuv]+", 99),
        ("nl", r"-ba", 99),
        ("head", r"-\d+|-[nc]\d*", 99),
        ("tail", r"-\d+|-[nc]\d*", 99),
        ("wc", r"-[clmwL]+", 99),
        (
            "grep egrep fgrep",
            r"-[EFGHILabchilnoqrsvwx]+|-[ABCm]\d*|-e|--(in|ex)clude(-dir)?=.+",
            99,
        ),
        ("rg", r"-[FHILNSchilnosuvwx.]+|-[ABCm]\d*|-[egt]|--(files|hidden|no-heading)", 99),
        ("stat", r"-[Lf]+|-c", 99),
        ("file", r"-[bLi]+", 99),
        ("realpath readlink", r"-[efm]+", 99),
        ("du", r"-[achksx]+|-d\d*|--max-depth=\d+", 99),
        ("df", r"-[hTik]+", 99),
        ("diff", r"-[uNrqwbBi]+|-U\d+", 2),
        ("cmp", r"-[sl]+", 2),
        ("comm", r"-[123]+", 2),
        ("cut", r"-[dfcb].*|-s", 99),
        ("tr", r"-[cdsC]+", 2),
        ("sort", r"-[bdfghinruVzM]+|-k\d[\d.,nr]*|-t.", 99),
        ("uniq", r"-[cdiu]+", 1),
        ("column", r"-t", 99),
        ("md5sum sha1sum sha256sum sha512sum cksum", r"(?!)", 99),
        ("tree", r"-[adfhps]+|-L", 99),
        (
            "find",
            r"-(i?name|i?path|type|maxdepth|mindepth|size|mtime|mmin|newer|empty|print0?|not|o|a"
            r"|prune|\d+)",
            99,
        ),
        ("sed", r"-n|-E", 99),
    )
    for name in names.split()
}
BUILTINS: Final = word_set("true false pwd cd echo printf type")
PLAIN_SED: Final = re.compile(r"(\d+|\$)(,(\d+|\$))?p")
READ_TARGETS: Final = re.compile(r"(\d*|&)>>?\s*/dev/null|\d*>&\d|<\s*/dev/null")


def only_reads(command: ShellCommand, context: PathContext) -> bool:
    """Whether a command has one of the exact forms that change nothing and run nothing."""
    program, words = command.program, command.words[1:]
    options, most = READ_FORMS.get(program, (NO_OPTIONS, -1))
    if command.words[0] != program or any(UNKNOWN_PART in word for word in words):
        return False
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    if program == "date":
        operands = [word for word in operands if not word.startswith("+")]
    if len(operands) > most or not all(
        options.fullmatch(word) for word in words if word.startswith("-") and word != "-"
    ):
        return False
    if program == "sed" and not ("-n" in words and operands and PLAIN_SED.fullmatch(operands[0])):
        return False
    if not (program in BUILTINS or _is_system_program(program)):
        return False
    return program in {"echo", "printf"} or not _meets_hidden(operands, context)


def _is_system_program(name: str) -> bool:
    """Whether PATH leads to a program of the system, and not to one of a project."""
    expected, found = system_program(name), program_on_path(name)
    return None not in {expected, found} and Path(str(expected)).samefile(str(found))


def _meets_hidden(operands: list[str], context: PathContext) -> bool:
    """Whether a program that reads these paths, and the current folder, may read a hidden file."""
    access = FileAccess(context.hermes_home, context.home)
    workspace = context.free[0] if context.free else context.bases[0]
    for operand in (".", *operands):
        fixed = re.match(r"[^*?\[]*", operand)
        named = operand if fixed is None or fixed[0] == operand else f"{fixed[0]}x"
        for path in possible_paths(named, context):
            real = Path(os.path.realpath(path if named == operand else path.parent))
            if real.parts[1:2] in {("proc",), ("dev",)} or access.is_hidden(real, workspace):
                return True
            if access.hidden_below(real):
                return True
    return False


MAX_DEPTH = 6
DOWNLOADERS = frozenset({"curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx"})
DECODERS = word_set("base64 base32 basenc xxd tr openssl uudecode")
REDEFINERS = {"hash": "p", "enable": "f"}  # another program under a known name
# Builtins that evaluate the subscript of a name: `unset 'a[$(…)]'`.
NAME_USERS = word_set(
    "read mapfile readarray getopts wait let unset declare typeset local export readonly"
)
TESTS = word_set("test [ printf")
COMMAND_TABLES = re.compile(r"BASH_(CMDS|ALIASES|ENV)|PROMPT_COMMAND")
OPTION_NAME = re.compile(r"^\S*[=!|:]")  # before a command in a word: `--action=exec=`, `+!`
DESTRUCTIVE_KEYS = frozenset({"delete-everything", "format-disk", "write-disk"})
MAX_SCANNED_WORDS = 60
# Programs that give a whole line to a shell somewhere.
REMOTE_RUNNERS = word_set(
    "ssh docker podman kubectl tmux screen vim nvim vi ex ed expect gdb lxc multipass vagrant make"
)
UNSET_VARIABLE = '"$HERMES_UNKNOWN"'  # a variable that nothing sets


class CommandReview(NamedTuple):
    """What was found, and whether the command is known to change nothing."""

    findings: tuple[RiskFinding, ...]
    only_reads: bool
    programs: frozenset[str] = frozenset()


class CommandReviewer:
    """Reviews command lines in one context of paths."""

    def __init__(self, context: PathContext) -> None:
        self._context = context
        self._parser = ShellParser(str(context.home), str(context.bases[0]), context.own_pid)

    def review(self, text: str) -> CommandReview:
        """Look at all of a command line."""
        work = _ReviewRun(self._parser, self._context)
        work.script(text, _Nesting())
        programs = frozenset(command.program for command in work.seen)
        return CommandReview(tuple(dict.fromkeys(work.findings)), work.only_reads, programs)

    def seen(self, text: str) -> tuple[ShellCommand, ...]:
        """Every command that was looked at: those of the line, and those they run."""
        work = _ReviewRun(self._parser, self._context)
        work.script(text, _Nesting())
        return tuple(work.seen)


class _Nesting(NamedTuple):
    """How a command came to be run."""

    depth: int = 0
    is_elevated: bool = False
    downloads: bool = False
    fed: str | None = None  # what the script reads, as of a command
    is_fed: bool = False


class _ReviewRun:
    """The findings of one command line, as they are collected."""

    def __init__(self, parser: ShellParser, context: PathContext) -> None:
        self._parser = parser
        self._context = context
        self.findings: list[RiskFinding] = []
        self._is_activated = False
        self._excerpt = ""
        self.seen: list[ShellCommand] = []
        self.only_reads = True
        self._has_quoted_code = False
        self._expands_again = False

    def script(self, text: str, way: _Nesting) -> None:
        """Look at a script, at any depth."""
        script = self._parser.parse(text)
        if not script.is_parsed or way.depth > MAX_DEPTH:
            self._found(RiskFinding("unparsable", "cannot be analyzed before it runs", Level.DOUBT))
        self._context = self._context.moved(_folders(script, str(self._context.home)))
        way = way._replace(
            downloads=way.downloads
            or any(command.program in DOWNLOADERS for command in script.commands)
        )
        self._is_activated |= any(
            command.program in {"source", "."} and command.words[-1].endswith("bin/activate")
            for command in script.commands
        )
        for finding in forbidden.of_script(script):
            self._found(finding)
        for target in script.writes:
            with self._reading(target.text):
                self._found(*path_zones.write_findings(target.path, self._context))
        self.only_reads &= script.is_plain and all(
            READ_TARGETS.fullmatch(text) for text in script.redirects
        )
        self._has_quoted_code |= script.has_quoted_code or any(
            command.program in DECODERS for command in script.commands
        )
        if any(COMMAND_TABLES.match(name) for name in script.assigned):
            self._found(RiskFinding("computed-command", "redefines commands", Level.DOUBT))
        self._evaluates(is_certain=script.expands_again)
        for value in script.values:
            commands = self._parser.parse(OPTION_NAME.sub("", value)).commands
            self._found(*self._destroying(commands))
        if way.depth <= MAX_DEPTH:
            for command in script.commands:
                with self._reading(command.text):
                    self._command(command._replace(is_elevated=way.is_elevated), way)
        keys = {finding.key for finding in self.findings}
        if keys & remote_effects.CREDENTIAL_KEYS and remote_effects.second_program(
            self.seen, script.assigned
        ):
            reason = "names another program, which would get your credentials"
            self._found(RiskFinding("computed-script", reason, Level.DOUBT))

    def _evaluates(self, *, is_certain: bool) -> None:
        """Note whether text is evaluated; if some of it was quoted before, it may be code."""
        self._expands_again |= is_certain
        if self._has_quoted_code and self._expands_again:
            reason = "evaluates quoted text as shell code"
            self._found(RiskFinding("computed-script", reason, Level.DOUBT))

    def _is_local(self, command: ShellCommand, finding: RiskFinding) -> bool:
        """Whether packages go into an environment that the script has entered before."""
        is_pip = command.program in {"pip", "pip3"} and finding.key == "global-packages"
        return is_pip and self._is_activated and "--user" not in command.words

    @contextmanager
    def _reading(self, text: str) -> Iterator[None]:
        """Note which part is read; of a nested script it is the command that runs it."""
        outer = self._excerpt
        self._excerpt = outer or text
        try:
            yield
        finally:
            self._excerpt = outer

    def _found(self, *findings: RiskFinding) -> None:
        self.findings += [finding._replace(excerpt=self._excerpt) for finding in findings]
        if findings:
            self.only_reads = False

    def _command(self, command: ShellCommand, way: _Nesting) -> None:
        """Look at one command, then at what it runs."""
        if command.program.startswith("git-"):
            command = command._replace(words=("git", command.program[4:], *command.words[1:]))
        if way.is_fed and not command.is_fed and command.fed is None:
            command = command._replace(fed=way.fed, is_fed=True)
        self.seen.append(command)
        words = tuple(map(_without_unknown_start, command.words))
        if words != command.words and way.depth <= MAX_DEPTH:
            self._command(command._replace(words=words), way._replace(depth=way.depth + 1))
        self._evaluates(is_certain=_evaluates_names(command))
        if not command.program or _redefines(command) or command.program in KEYWORDS:
            reason = "runs a program whose name is only known at run time"
            self._found(RiskFinding("computed-command", reason, Level.DOUBT))
        self._found(*forbidden.findings(command, self._context))
        self._found(*path_zones.findings(command, self._context))
        self._found(
            *(
                finding
                for finding in risks.findings(command)
                if not self._is_local(command, finding)
            )
        )
        self._found(*remote_effects.findings(command))
        if command.program == "git":
            self._found(*risks.git_findings(command, self._context))
        inner = list(inner_commands(command))
        self._found(*self._hidden(command, inner))
        self.only_reads = self.only_reads and only_reads(command, self._context)
        if way.depth <= MAX_DEPTH:
            self._runs(command, inner, way)

    def _runs(self, command: ShellCommand, inner: list[ShellCommand], way: _Nesting) -> None:
        for item in inner:
            self._command(item, way._replace(depth=way.depth + 1, is_elevated=item.is_elevated))
        is_elevated = command.is_elevated or command.program == "su"
        is_fed = command.is_fed or command.fed is not None
        way = way._replace(
            depth=way.depth + 1, is_elevated=is_elevated, fed=command.fed, is_fed=is_fed
        )
        text = inner_script(command)
        if text is not None and UNKNOWN_PART in text:
            self._found(_unknown_script(command, text, way))
        if text is not None and text.replace(UNKNOWN_PART, "").strip():
            self.script(text.replace(UNKNOWN_PART, UNSET_VARIABLE), way)
        if _reads_code(command):
            self._found(_unknown_script(command, UNKNOWN_PART, way))

    def _hidden(self, command: ShellCommand, inner: list[ShellCommand]) -> list[RiskFinding]:
        """A destroying command among the words of a program that may well run it."""
        if command.program in SHELLS or (command.program in READ_FORMS and not inner):
            return []
        words = command.words[:MAX_SCANNED_WORDS]
        rests = [command._replace(words=words[place:]) for place in range(1, len(words))]
        texts = [
            *words[1:],
            *((command.fed or "").splitlines() if command.program in REMOTE_RUNNERS else ()),
        ]
        for text in texts:
            if " " in text.strip() and UNKNOWN_PART not in text:
                rests += self._parser.parse(OPTION_NAME.sub("", text)).commands
        if command.program in REMOTE_RUNNERS:  # `shell rm …` of gdb
            rests += [rest._replace(words=rest.words[1:]) for rest in rests]
        return self._destroying(rests)

    def _destroying(self, commands: Iterable[ShellCommand]) -> list[RiskFinding]:
        """The worst that commands would do which something else may well run."""
        return [
            finding._replace(level=Level.DOUBT)
            for command in commands
            for finding in forbidden.findings(command, self._context)
            if finding.level == Level.FLOOR and finding.key in DESTRUCTIVE_KEYS
        ]


def _redefines(command: ShellCommand) -> bool:
    """Whether a known name leads to another program afterwards."""
    letter = REDEFINERS.get(command.program)
    options = "".join(word for word in command.words[1:] if word[:1] in {"-", UNKNOWN_PART})
    return (letter is not None and (letter in options or UNKNOWN_PART in options)) or any(
        COMMAND_TABLES.match(word) for word in command.words
    )


def _without_unknown_start(word: str) -> str:
    """An option as it is if the variables in it are empty; other words as they are."""
    bare = word.replace(UNKNOWN_PART, "")
    return bare if bare.startswith("-") else word


def _evaluates_names(command: ShellCommand) -> bool:
    """Whether a builtin evaluates one of its words."""
    words = command.words[1:]
    if command.program == "let":  # arithmetic, also of what its variables contain
        return True
    if command.program in {"compgen", "complete"}:
        return any(word.startswith("-W") for word in words)
    if command.program in TESTS:
        return any(re.match(r"-[vR]", word) or word[:1] == UNKNOWN_PART for word in words)
    return command.program in NAME_USERS and any(is_computed_name(word) for word in words)


def _folders(script: ShellScript, home: str) -> list[str]:
    """Where a script goes; an unknown one is not a folder of ours."""
    results = []
    for command in script.commands:
        if command.program in {"cd", "pushd", "chdir"}:
            words = [word for word in command.words[1:] if word not in {"-P", "-L", "--"}]
            target = words[0] if words else home
            results.append(
                f"/{UNKNOWN_PART}" if UNKNOWN_PART in target or target == "-" else target
            )
    return results


def _reads_code(command: ShellCommand) -> bool:
    """Whether an interpreter runs what another program prints."""
    return (
        INTERPRETERS.fullmatch(command.program) is not None
        and command.is_fed
        and command.fed is None
        and (len(command.words) == 1 or command.words[1] == "-")
    )


def _unknown_script(command: ShellCommand, text: str, way: _Nesting) -> RiskFinding:
    is_all = not text.replace(UNKNOWN_PART, "").strip()
    if way.downloads and is_all and way.is_elevated:
        return RiskFinding("download-to-root-shell", "would run a download as root", Level.FLOOR)
    if way.downloads and is_all:
        return RiskFinding("download-to-shell", "runs what it downloads", Level.RISK)
    if command.is_fed and is_all:
        return RiskFinding("pipe-to-shell", "runs what another program prints", Level.DOUBT)
    return RiskFinding(
        "computed-script", "runs a script that is only known at run time", Level.DOUBT
    )
