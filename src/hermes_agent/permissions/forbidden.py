"""Commands that are refused in every mode."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.permissions.path_zones import (
    DISK_DEVICES,
    holds_home,
    holds_system,
    split_options,
)
from hermes_agent.permissions.shell_words import UNKNOWN_PART
from hermes_agent.permissions.verdicts import Level, RiskFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.permissions.path_zones import PathContext
    from hermes_agent.permissions.shell_script import ShellCommand, ShellScript

    Rule = Callable[[ShellCommand, PathContext], Iterator[RiskFinding]]

FORMATTERS = re.compile(r"mkfs(\..*)?|mke2fs|mkswap|blkdiscard|newfs|wipefs")
PARTITIONERS = frozenset({"fdisk", "gdisk", "sgdisk", "sfdisk", "parted", "cfdisk", "diskutil"})
POWER_PROGRAMS = frozenset({"shutdown", "reboot", "halt", "poweroff"})
POWER_WORDS = POWER_PROGRAMS | {"kexec", "emergency", "rescue"}
FILTERS = re.compile(r"-i?(name|path|regex|wholename)|-(newer|mtime|mmin|size|user|empty|inum).*")
REMOVERS = frozenset({"rm", "shred", "unlink", "truncate", "mv", "dd", "sh", "bash"})
OWN_NAMES = re.compile(r"\bhermes\b")
SIGNAL_OPTIONS = re.compile(r"-(s|n|\d+|SIG\w+|[A-Z]\w*|l|L|-signal(=.*)?)")


def everything(what: str, level: Level = Level.FLOOR) -> RiskFinding:
    """The finding for a command that destroys all there is."""
    return RiskFinding("delete-everything", f"would {what} everything", level)


def findings(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    """What is never run in one simple command, or may be such a thing."""
    program = command.program
    if FORMATTERS.fullmatch(program):
        yield RiskFinding("format-disk", "would format a disk", Level.FLOOR)
    if program in POWER_PROGRAMS or (
        program in {"init", "telinit"} and set(command.words[1:]) & {"0", "6"}
    ):
        yield RiskFinding("power-off", "would stop the machine", Level.FLOOR)
    rule = RULES.get(program)
    if rule is not None:
        yield from rule(command, context)


def of_script(script: ShellScript) -> Iterator[RiskFinding]:
    """What shows in the whole of a script alone: functions that call themselves twice over."""
    for name, body in script.functions:
        call = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        if re.search(rf"{call}\s*\|\s*{call}", body) or (
            re.search(rf"{call}\s*&", body) and len(re.findall(call, body)) > 1
        ):
            yield RiskFinding("fork-bomb", "would start processes endlessly", Level.FLOOR)


def _lost(
    paths: tuple[str, ...], context: PathContext, what: str, *, homes: bool
) -> Iterator[RiskFinding]:
    """Whether one of *paths* holds the system, or a home; or may do so when it runs."""
    for path in paths:
        if path.strip() and UNKNOWN_PART not in path:
            if holds_system(path, context) or (homes and holds_home(path, context)):
                yield everything(what)
        elif UNKNOWN_PART in path and _may_be_all(path, context):
            yield everything(f"perhaps {what}", Level.DOUBT)


def _may_be_all(path: str, context: PathContext) -> bool:
    """A variable may be empty, and `"$X/"` is then the root of all files."""
    rest = path.replace(UNKNOWN_PART, "")
    return not rest or holds_system(rest, context) or holds_home(rest, context)


def _remove(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    result = split_options(command)
    if result.has("rR", "--recursive", "--no-preserve-root") or hides_options(command):
        yield from _lost(result.positionals, context, "delete", homes=True)
    if any(UNKNOWN_PART in option for option in result.options):
        yield everything("perhaps delete", Level.DOUBT)


def hides_options(command: ShellCommand) -> bool:
    """Whether a word that is not known may hold `-rf`; after `--` it cannot."""
    words = command.words[: command.words.index("--")] if "--" in command.words else command.words
    return any(UNKNOWN_PART in word and not word.replace(UNKNOWN_PART, "") for word in words[1:])


def _find(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    words = command.words[1:]
    starts = tuple(word for word in words[: _first_option(words)] if word not in {"-H", "-L", "-P"})
    removes = "-delete" in words or bool(REMOVERS & set(words))
    if removes and any(FILTERS.fullmatch(word) for word in words):  # perhaps of every name
        for finding in _lost(starts or (".",), context, "perhaps delete", homes=True):
            yield finding._replace(level=Level.DOUBT)
    elif removes:
        yield from _lost(starts or (".",), context, "delete", homes=True)


def _first_option(words: tuple[str, ...]) -> int:
    """Where the paths of `find` end."""
    for place, word in enumerate(words):
        if (word.startswith("-") and word not in {"-H", "-L", "-P"}) or word in {"(", "!"}:
            return place
    return len(words)


def _move(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    sources = tuple(
        positional
        for positional in split_options(command).positionals[:-1]
        if UNKNOWN_PART not in positional
    )
    yield from _lost(sources, context, "move", homes=True)


def _permissions(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    result = split_options(command)
    if result.has("R", "--recursive"):
        for finding in _lost(
            result.positionals[1:], context, "change the permissions of", homes=False
        ):
            yield finding._replace(key="permissions-everywhere")


def _partition(command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    result = split_options(command)
    if not result.has("lp", "--list", "--print") and set(result.positionals[:1]) - {"list", "info"}:
        yield RiskFinding("format-disk", "would change disk partitions", Level.FLOOR)


def _kill(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    for place, word in enumerate(command.words[1:], 1):
        is_first = place == 1 and SIGNAL_OPTIONS.fullmatch(word) is not None
        if command.words[place - 1] in {"-s", "-n", "--signal"} or is_first:
            continue  # a signal, no process
        if word in {"1", "-1", "+1", "01", "001", str(context.own_pid), f"-{context.own_pid}"}:
            yield RiskFinding("kill-system", "would kill the system or Hermes itself", Level.FLOOR)


def _kill_by_name(command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    if any(OWN_NAMES.search(word) for word in command.words[1:]):
        yield RiskFinding("kill-system", "would kill Hermes itself", Level.FLOOR)


def _kill_all(_command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    yield RiskFinding("kill-system", "would kill every process", Level.FLOOR)


def _services(command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    if set(command.words[1:]) & POWER_WORDS:
        yield RiskFinding("power-off", "would stop the machine", Level.FLOOR)


def _wipe(command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    if any(DISK_DEVICES.match(word) for word in split_options(command).positionals):
        yield RiskFinding("write-disk", "would overwrite a disk", Level.FLOOR)


def _disk_copy(command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    if any(word.startswith("of=") and UNKNOWN_PART in word for word in command.words):
        yield RiskFinding("write-disk", "perhaps overwrites a disk", Level.DOUBT)


OWN_SETTINGS = frozenset(
    {"api-keys", "checkpoints", "config", "dashboard", "mcp", "pairing", "people", "permissions",
     "plugins", "restore", "service", "setup", "trust"}
)  # fmt: skip


def _own_settings(command: ShellCommand, _context: PathContext) -> Iterator[RiskFinding]:
    """The agent must not change what it is allowed to do."""
    if set(split_options(command).positionals[:1]) & OWN_SETTINGS:
        yield RiskFinding("own-approvals", "would change the settings of Hermes", Level.FLOOR)


RULES: dict[str, Rule] = {
    "hermes": _own_settings,
    "dd": _disk_copy,
    "rm": _remove,
    "find": _find,
    "mv": _move,
    **dict.fromkeys(("chmod", "chown", "chgrp"), _permissions),
    **dict.fromkeys(PARTITIONERS, _partition),
    "kill": _kill,
    **dict.fromkeys(("pkill", "killall"), _kill_by_name),
    "killall5": _kill_all,
    **dict.fromkeys(("systemctl", "loginctl"), _services),
    **dict.fromkeys(("shred", "badblocks", "hdparm", "cryptsetup"), _wipe),
}
