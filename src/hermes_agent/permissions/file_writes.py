"""Which files a command writes, by what its program is known to do with its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions.path_zones import Zone, zone_of
from hermes_agent.permissions.shell_words import word_set
from hermes_agent.permissions.verdicts import Level, RiskFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.permissions.path_zones import PathContext
    from hermes_agent.permissions.shell_script import ShellCommand


class CommandParts(NamedTuple):
    """The words of a command, told apart."""

    options: tuple[str, ...]
    positionals: tuple[str, ...]

    def has(self, letters: str, *names: str) -> bool:
        """Whether an option is given: one of these letters, or by name (or its beginning)."""
        for option in self.options:
            if option.startswith("--"):
                name = option.partition("=")[0]
                if len(name) > 2 and any(item.startswith(name) for item in names):
                    return True
            elif any(letter in option[1:] for letter in letters) or option in names:
                return True
        return False


def split_options(command: ShellCommand) -> CommandParts:
    """Options and the rest; after `--` there are no options."""
    options: list[str] = []
    positionals: list[str] = []
    words = list(command.words[1:])
    while words:
        word = words.pop(0)
        if word == "--":
            positionals += words
            break
        if word.startswith("-") and len(word) > 1:
            options.append(word)
        else:
            positionals.append(word)
    return CommandParts(tuple(options), tuple(positionals))


ALL_ARGUMENTS = "rm rmdir unlink touch mkdir tee truncate shred mkfifo mknod mv setfacl"
AFTER_FIRST_ARGUMENT = "chmod chown chgrp chattr"
LAST_ARGUMENT = "cp install rsync ln scp"
OUTPUT_OPTIONS = {
    "curl": ("-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar"),
    "wget": ("-O", "--output-document", "-P", "--directory-prefix", "-o", "-a"),
    "sort": ("-o", "--output"),
    "unzip": ("-d",),
    "tar": ("-C", "--directory", "--one-top-level"),
    "cp": ("-t", "--target-directory"),
    "mv": ("-t", "--target-directory"),
    "install": ("-t", "--target-directory"),
    "ln": ("-t", "--target-directory"),
    "pip": ("-t", "--target", "--prefix", "--root"),
    "find": ("-fprint", "-fprintf", "-fls", "-fprint0"),
    "tree": ("-o",),
    "gcc": ("-o",),
    "cc": ("-o",),
    "clang": ("-o",),
    "go": ("-o",),
}
WRITERS = word_set(f"{ALL_ARGUMENTS} {AFTER_FIRST_ARGUMENT} {LAST_ARGUMENT} dd patch unzip")


def targets(command: ShellCommand) -> Iterator[str]:
    """The files and folders that a command changes, as it names them."""
    program = command.program
    yield from _by_options(command)
    result = BY_PROGRAM.get(program)
    if result is not None:
        yield from result(split_options(command))


def _by_options(command: ShellCommand) -> Iterator[str]:
    names = OUTPUT_OPTIONS.get(command.program, ())
    words = command.words
    for place, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if equals and name in names:
            yield value
        elif (word in names or _ends_with(word, names)) and place + 1 < len(words):
            yield words[place + 1]
        elif not word.startswith("--") and word[:2] in names and len(word) > 2:
            yield word[2:]


def _ends_with(word: str, names: tuple[str, ...]) -> bool:
    """Several options of one letter in one word, the last of which takes a value: `-sSLo`."""
    return re.fullmatch(r"-[A-Za-z]{2,}", word) is not None and f"-{word[-1]}" in names


def _disk_copy(found: CommandParts) -> list[str]:
    return [word[3:] for word in found.positionals if word.startswith("of=")]


def _in_place(found: CommandParts) -> list[str]:
    """`sed -i` and `perl -i`: the files stand behind the script."""
    if not any(re.match(r"-[a-zA-Z]*i|--in-place", option) for option in found.options):
        return []
    has_script = any(re.match(r"-\w*[ef]|--(expression|file)", option) for option in found.options)
    return list(found.positionals if has_script else found.positionals[1:])


BY_PROGRAM: dict[str, Callable[[CommandParts], list[str]]] = {
    **dict.fromkeys(ALL_ARGUMENTS.split(), lambda item: list(item.positionals)),
    **dict.fromkeys(AFTER_FIRST_ARGUMENT.split(), lambda item: list(item.positionals[1:])),
    **dict.fromkeys(LAST_ARGUMENT.split(), lambda item: list(item.positionals[-1:])),
    **dict.fromkeys(("sed", "gsed", "perl"), _in_place),
    "dd": _disk_copy,
}

ZONE_FINDINGS: dict[Zone, tuple[str, str, Level]] = {
    Zone.OUTSIDE: ("write-outside", "writes outside the working folder", Level.RISK),
    Zone.UNKNOWN: ("write-unknown", "writes to a path that is only known at run time", Level.RISK),
    Zone.DOTFILE: (
        "home-dotfile",
        "changes a hidden or startup file in your home folder",
        Level.RISK,
    ),
    Zone.GIT: ("git-internals", "changes a repository's .git folder", Level.RISK),
    Zone.HERMES: ("hermes-files", "changes the configuration of Hermes", Level.DOUBT),
    Zone.NETWORK: ("network-shell", "writes to a network connection", Level.RISK),
    Zone.APPROVALS: ("own-approvals", "changes what Hermes may do without asking", Level.FLOOR),
    Zone.INSTALLATION: (
        "own-program",
        "changes the program files of Hermes. Work in another folder, such as a second clone",
        Level.FLOOR,
    ),
    Zone.ACCOUNTS: ("system-accounts", "overwrites system account files", Level.FLOOR),
    Zone.DISK: ("write-disk", "writes directly to a disk device", Level.FLOOR),
    Zone.FREE: ("write", "changes files", Level.WRITE),
}


def write_findings(target: str, context: PathContext) -> Iterator[RiskFinding]:
    """What writing to *target* means."""
    saying = ZONE_FINDINGS.get(zone_of(target, context))
    if saying is not None:
        key, reason, level = saying
        yield RiskFinding(key, reason, level)


def findings(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    """What the files mean that a command writes."""
    for target in targets(command):
        if command.program in {"rsync", "scp"} and re.match(r"[\w.@-]+:", target):
            continue  # another machine: asked for as such
        yield from write_findings(target, context)
    if command.program in WRITERS:
        yield RiskFinding("write", "changes files", Level.WRITE)
