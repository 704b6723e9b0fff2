"""Where a path lies, and what lies there."""

from __future__ import annotations

import os
import re
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions.shell_words import UNKNOWN_PART, word_set
from hermes_agent.permissions.verdicts import Level, RiskFinding
from hermes_agent.sandbox.policy import start_up_paths
from hermes_core.paths import TRUST_FILE, installation_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.permissions.shell_script import ShellCommand


HARMLESS_DEVICES = re.compile(r"/dev/(null|zero|full|tty|stdin|stdout|stderr|fd/\d+)")
DISK_DEVICES = re.compile(
    r"/dev/(?:r?disk\d|[shv]d[a-z]|xvd|nvme\d|mmcblk|md\d|dm-|mapper/|loop\d|sr\d|mem$|kmem$|port$)"
)
ACCOUNTS = frozenset({"/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/group", "/etc/sudoers"})
KERNEL = re.compile(r"/proc/sysrq-trigger|/sys/firmware/efi/.*|/boot/.*")
SYSTEM_PATHS = word_set(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /run /sbin /srv /sys /usr /usr/bin "
    "/usr/lib /usr/sbin /usr/local /var /var/lib "
    "/Users /System /Library /Applications /private"
)
MATCH_ALL_GLOB = re.compile(r"[*?.!\[\]^{}]+")  # a last part that means all of a folder


class Zone(Enum):
    """How a place counts."""

    HARMLESS = "harmless"
    FREE = "free"
    DOTFILE = "dotfile"
    GIT = "git"
    HERMES = "hermes"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"
    NETWORK = "network"
    APPROVALS = "approvals"
    INSTALLATION = "installation"
    ACCOUNTS = "accounts"
    DISK = "disk"


class PathContext(NamedTuple):
    """What paths are compared with."""

    home: Path
    hermes_home: Path
    free: tuple[Path, ...]  # the working folder and others where the agent may write
    bases: tuple[Path, ...]  # folders that relative paths may start from
    own_pid: int
    private: tuple[Path, ...] = ()  # where a command has a folder of its own in the sandbox

    def moved(self, folders: list[str]) -> PathContext:
        """The context after `cd` to one or more of these: any of them may be the base."""
        bases = list(self.bases)
        for folder in folders:
            bases += [_absolute(folder, base) for base in bases[:8]]
        return self._replace(bases=tuple(dict.fromkeys(bases)))


def _absolute(path: str, base: Path) -> Path:
    return Path(os.path.normpath("/" + str(base / path).lstrip("/")))


def possible_paths(path: str, context: PathContext) -> list[Path]:
    """What a path may name: from each base, as written and with symbolic links followed."""
    result: dict[Path, None] = {}
    for base in context.bases:
        written = _absolute(path, base)
        result[written] = None
        result[Path(os.path.realpath(written))] = None
    return list(result)


def zone_of(path: str, context: PathContext) -> Zone:
    """How a place counts, the worst that it may be."""
    certain = [
        _zone(possible_path, context)
        for possible_path in possible_paths(path.replace(UNKNOWN_PART, ""), context)
    ]
    worst = max(certain, key=list(Zone).index)
    if UNKNOWN_PART in path and worst not in {Zone.ACCOUNTS, Zone.DISK, Zone.APPROVALS}:
        return Zone.UNKNOWN
    return worst


def _zone(path: Path, context: PathContext) -> Zone:
    text = str(path)
    for pattern, answer in (
        (HARMLESS_DEVICES, Zone.HARMLESS),
        (re.compile(r"/dev/(tcp|udp)/.*"), Zone.NETWORK),
        (KERNEL, Zone.DISK),
        (re.compile(f"{DISK_DEVICES.pattern}.*"), Zone.DISK),
    ):
        if pattern.fullmatch(text):
            return answer
    if text in ACCOUNTS or text.startswith("/etc/sudoers.d/"):
        return Zone.ACCOUNTS
    if any(path.is_relative_to(folder) for folder in installation_paths()):
        return Zone.INSTALLATION
    return _among_files(path, context)


def _among_files(path: Path, context: PathContext) -> Zone:
    for home in {context.hermes_home, Path(os.path.realpath(context.hermes_home))}:
        if path in {home / "approvals.json", home / TRUST_FILE}:
            return Zone.APPROVALS
        if path in {home, home / "config.yaml", home / ".env"} or path.is_relative_to(
            home / "plugins"
        ):
            return Zone.HERMES
    if _is_start_up_or_hidden(path, context):
        return Zone.DOTFILE
    is_free = _is_free(path, context)
    if not is_free and _is_private(path, context):
        return Zone.HARMLESS
    if any(part.lower() == ".git" for part in path.parts):  # a file of that name leads to one
        return Zone.GIT
    return Zone.FREE if is_free else Zone.OUTSIDE


def _is_start_up_or_hidden(path: Path, context: PathContext) -> bool:
    """Whether a path is in a hidden entry of the home folder, or runs when the user logs in."""
    if not path.is_relative_to(context.home):
        return False
    if any(path.is_relative_to(start_up) for start_up in start_up_paths(context.home)):
        return True
    first = path.relative_to(context.home).parts[:1]
    is_hidden = bool(first) and first[0].startswith(".")
    return is_hidden and not _is_free(path, context, below=context.home)


def _is_private(path: Path, context: PathContext) -> bool:
    """Whether a path is in the private temporary folder of the sandbox.

    A command that names an entry of the real folder means that one.
    """
    is_home = path.is_relative_to(context.home) or path.is_relative_to(context.hermes_home)
    return not is_home and any(
        path != folder and not os.path.lexists(folder / path.relative_to(folder).parts[0])
        for folder in context.private
        if path.is_relative_to(folder)
    )


def _is_free(path: Path, context: PathContext, below: Path | None = None) -> bool:
    """Whether the agent may write there; with *below*, by a folder that is deeper than it."""
    folders = {*context.free, *(Path(os.path.realpath(folder)) for folder in context.free)}
    if below is not None:
        folders = {folder for folder in folders if folder != below and folder.is_relative_to(below)}
    return any(path.is_relative_to(folder) for folder in folders)


def holds_system(path: str, context: PathContext) -> bool:
    """Whether losing this place means losing the machine."""
    text = path.rstrip("/") or "/"
    if any(str(possible_path) in SYSTEM_PATHS for possible_path in possible_paths(text, context)):
        return True
    head, _slash, last = text.rpartition("/")
    is_glob = re.search(r"[*?\[]", last) is not None
    return is_glob and any(
        str(possible_path) == "/"
        or (str(possible_path) in SYSTEM_PATHS and MATCH_ALL_GLOB.fullmatch(last) is not None)
        for possible_path in possible_paths(head or ("/" if text.startswith("/") else "."), context)
    )


def holds_home(path: str, context: PathContext) -> bool:
    """Whether a person would lose everything with this folder."""
    text = path.rstrip("/") or "/"
    head, _slash, last = text.rpartition("/")
    if MATCH_ALL_GLOB.fullmatch(last) and last not in {".", ".."}:
        text = head or ("/" if text.startswith("/") else ".")
    homes = {context.home, Path(os.path.realpath(context.home)), *context.home.parents}
    result = possible_paths(text, context)
    return any(
        item.parent == Path("/home") or any(_may_mean(item, home) for home in homes)
        for item in result
    )


def _may_mean(path: Path, folder: Path) -> bool:
    """Whether a path, which may be a glob, may mean a folder."""
    return len(path.parts) == len(folder.parts) and all(
        part == pattern or fnmatchcase(part, pattern)
        for part, pattern in zip(folder.parts, path.parts, strict=True)
    )


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
