"""One command line reviewed: everything that is found in it and in what it runs in turn."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions import file_writes, forbidden, remote_effects, risks
from hermes_agent.permissions.nested_commands import (
    INTERPRETERS,
    SHELLS,
    inner_commands,
    inner_script,
)
from hermes_agent.permissions.shell_script import ShellParser
from hermes_agent.permissions.shell_words import UNKNOWN_PART, word_set
from hermes_agent.permissions.verdicts import Level, RiskFinding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.permissions.path_zones import PathContext
    from hermes_agent.permissions.shell_script import ShellCommand, ShellScript

READERS = word_set(
    "ls cat head tail less more wc grep egrep fgrep rg ag fd file stat du df pwd cd echo printf "
    "true false test [ : which type whereis basename dirname realpath readlink date uname whoami "
    "id groups hostname uptime ps pgrep top free lsof printenv diff cmp comm cut tr uniq column nl "
    "tac rev fold expand od xxd hexdump strings md5sum sha1sum sha256sum cksum jq yq tree find "
    "sort seq sleep man help locale getconf nproc lscpu arch exit return set shift export declare "
    "local readonly typeset read unset break continue wait jobs git sed tldr cal paste join look "
    "pstree vmstat dmesg journalctl zcat zgrep bat column numfmt factor dig "
    "nslookup host ping"
)
# Variables by which a program that reads would load or run something else.
LOADERS = re.compile(
    r"(PATH|LD_\w+|BASH_ENV|ENV|IFS|PAGER|\w+_PAGER|EDITOR|GIT_\w+|\w*OPT(ION)?S|PROMPT_COMMAND)"
)
# Options by which a program that reads would write or run another.
WRITE_OPTIONS = {
    "find": re.compile(r"-(exec|execdir|ok|okdir|delete|fprint|fprintf|fprint0|fls)"),
    "fd": re.compile(r"-\w*[xX].*|--exec.*"),
    "ag": re.compile(r"--pager.*"),
    "printf": re.compile(r"-v.*"),
    "read": LOADERS,
    "sort": re.compile(r"-\w*[oT].*|--(output|compress|temp).*"),
    "rg": re.compile(r"--pre.*|--hostname-bin.*"),
    "tree": re.compile(r"-\w*[oR].*"),
    "less": re.compile(r"-\w*[oO].*|\+.*|--log-file.*"),
    "more": re.compile(r"\+.*"),
    "man": re.compile(r"-[PHC].*|--pager.*|--html.*"),
    "date": re.compile(r"-\w*s.*|--set.*"),
    "hostname": re.compile(r"[^-].*|-[bF].*"),
    "dmesg": re.compile(r"-[cCDEn].*|--(clear|read-clear|console).*"),
    "journalctl": re.compile(r"--(vacuum|rotate|flush|sync).*"),
    "yq": re.compile(r"-i|--inplace"),
    "bat": re.compile(r"--pager.*"),
    "file": re.compile(r"-C|--compile"),
}
PLAIN_SED = re.compile(r"(\d+|\$|/[^/;{}]*/)?(,(\d+|\$|/[^/;{}]*/))?[pdq=](;|$)")


def only_reads(command: ShellCommand) -> bool:
    """Whether this command is known to change nothing."""
    program, words = command.program, command.words[1:]
    if program not in READERS or "/" in command.words[0].removeprefix("/usr/bin/").removeprefix(
        "/bin/"
    ):
        return False
    if program == "git" and not any(word.startswith(UNKNOWN_PART) for word in words):
        return risks.reads(command)
    if program in {"sed", "git"}:
        return program == "sed" and _sed_reads(words)
    if program in {"uniq", "xxd"}:  # the second file is written
        return len([word for word in words if not word.startswith("-")]) < 2 and "-r" not in words
    exception = WRITE_OPTIONS.get(program)
    if exception is not None and any(word.startswith(UNKNOWN_PART) for word in words):
        return False  # it may be an option
    return exception is None or not any(exception.fullmatch(word) for word in words)


def _sed_reads(words: tuple[str, ...]) -> bool:
    """`sed -n 1,20p` and the like; other scripts may write files or run programs."""
    options = [word for word in words if word.startswith("-")]
    rest = [word for word in words if not word.startswith("-")]
    if any(option not in {"-n", "-E", "-r", "--quiet"} for option in options) or not rest:
        return False
    return all(PLAIN_SED.fullmatch(f"{part};") for part in rest[0].split(";") if part.strip())


MAX_DEPTH = 6
DOWNLOADERS = frozenset({"curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx"})
TRANSPARENT_WRAPPERS = frozenset({"time", "timeout", "nice", "command"})
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
                self._found(*file_writes.write_findings(target.path, self._context))
        if any(LOADERS.fullmatch(name) for name in script.assigned):
            self.only_reads = False
        if way.depth <= MAX_DEPTH:
            for command in script.commands:
                with self._reading(command.text):
                    self._command(command._replace(is_elevated=way.is_elevated), way)

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
        self.seen.append(command)
        if not command.program:
            reason = "runs a program whose name is only known at run time"
            self._found(RiskFinding("computed-command", reason, Level.DOUBT))
        self._found(*forbidden.findings(command, self._context))
        self._found(*file_writes.findings(command, self._context))
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
        self._found(*self._hidden(command))
        inner = list(inner_commands(command))
        if not (inner and command.program in TRANSPARENT_WRAPPERS) and not only_reads(command):
            self.only_reads = False
        if way.depth <= MAX_DEPTH:
            self._runs(command, inner, way)

    def _runs(self, command: ShellCommand, inner: list[ShellCommand], way: _Nesting) -> None:
        for item in inner:
            self._command(item, way._replace(depth=way.depth + 1, is_elevated=item.is_elevated))
        is_elevated = command.is_elevated or command.program == "su"
        way = way._replace(depth=way.depth + 1, is_elevated=is_elevated)
        text = inner_script(command)
        if text is not None and UNKNOWN_PART in text:
            self._found(_unknown_script(command, text, way))
        if text is not None and text.replace(UNKNOWN_PART, "").strip():
            self.script(text.replace(UNKNOWN_PART, UNSET_VARIABLE), way)
        if _reads_code(command):
            self._found(_unknown_script(command, UNKNOWN_PART, way))

    def _hidden(self, command: ShellCommand) -> list[RiskFinding]:
        """A destroying command among the words of a program that may well run it."""
        if command.program in SHELLS or only_reads(command):
            return []
        words = command.words[:MAX_SCANNED_WORDS]
        rests = [command._replace(words=words[place:]) for place in range(1, len(words))]
        if command.program in REMOTE_RUNNERS:
            texts = (word for word in words[1:] if " " in word and UNKNOWN_PART not in word)
            rests += [command for text in texts for command in self._parser.parse(text).commands]
        return [
            finding._replace(level=Level.DOUBT)
            for rest in rests
            for finding in forbidden.findings(rest, self._context)
            if finding.level == Level.FLOOR and finding.key in DESTRUCTIVE_KEYS
        ]


def _folders(script: ShellScript, home: str) -> list[str]:
    """Where a script goes; what is not known is no place of ours."""
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
