"""Commands inside commands: what sudo, env, timeout, xargs, find and shells run in turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions.shell_words import STREAM, UNKNOWN_PART

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.permissions.shell_script import ShellCommand


class Wrapper(NamedTuple):
    """Where a program's own words end and the command that it runs begins."""

    with_value: str = ""  # options of one letter that take a value
    positionals: int = 0  # own words before the command
    is_elevated: bool = False
    subcommand: str = ""  # the word that makes it a wrapper
    assigned: str = r"[A-Za-z_]\w*="  # the beginning of an assignment before the command


WRAPPERS = {
    "sudo": Wrapper("ugpCDhRrtTU", is_elevated=True, assigned=r"[^=]*="),
    "doas": Wrapper("uC", is_elevated=True),
    "pkexec": Wrapper("", is_elevated=True),
    "run0": Wrapper("", is_elevated=True),
    "env": Wrapper("uC", assigned=r"[^=]*="),  # also of a name that a shell does not take
    "nohup": Wrapper(),
    "time": Wrapper("of"),
    "nice": Wrapper("n"),
    "ionice": Wrapper("cnpPu"),
    "stdbuf": Wrapper("ioe"),
    "timeout": Wrapper("sk", 1),
    "gtimeout": Wrapper("sk", 1),
    "setsid": Wrapper(),
    "chroot": Wrapper("", 1),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper("a"),
    "xargs": Wrapper("EILnPsda"),
    "parallel": Wrapper("jNS"),
    "watch": Wrapper("n"),
    "strace": Wrapper("eopsSuE"),
    "ltrace": Wrapper("eopsSu"),
    "unshare": Wrapper(),
    "nsenter": Wrapper("tSG"),
    "flock": Wrapper("wE", 1),
    "chrt": Wrapper("", 1),
    "taskset": Wrapper("", 1),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "caffeinate": Wrapper("tw"),
    "unbuffer": Wrapper(),
    "systemd-run": Wrapper("pMEu"),
    "proxychains4": Wrapper("f"),
    "uv": Wrapper("p", subcommand="run"),
    "poetry": Wrapper("C", subcommand="run"),
    "pipenv": Wrapper("", subcommand="run"),
    "hatch": Wrapper("", subcommand="run"),
    "pdm": Wrapper("", subcommand="run"),
    "npx": Wrapper("p"),
    "jobs": Wrapper(),
}
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash"})
BASH_NAMES = frozenset({"bash", "rbash"})
POSIX_SHELLS = frozenset({"sh", "dash", "ash"})
# What bash reads in another way than a shell with the language of POSIX.
BASHISMS = re.compile(
    r"\(\(|\[\[|\$['\"]|&>|>&\D|[<>]\(|\{[^{}\s]*(?:,|\.\.)|<<<|\|&|;&|\b(?:function|coproc|select|time)\b"
)
PLAIN_SCRIPT = re.compile(r"[\w\s./:@%+,;&|'\"-]*")
INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|osascript|pwsh)[\d.]*"
)
RUNS_TEXT = {"eval": 0, "trap": 1}
TEXT_READERS = frozenset({"sudo", "doas", "su", "runuser", "at", "batch"})  # without a command
JOINERS = frozenset({"watch", "parallel"})  # their words are one script
SCRIPT_OPTIONS = {
    "su": "-c", "runuser": "-c", "script": "-c", "flock": "-c", "env": "-S",
    "mapfile": "-C", "readarray": "-C", "compgen": "-C", "complete": "-C", "bind": "-x",
}  # fmt: skip
GIT_SCRIPTS = re.compile(
    r"alias\.[^=]*=!?|core\.(?:sshcommand|pager|editor|fsmonitor)=|--exec=|-x(?=.)|--[\w-]+-filter=",
    re.IGNORECASE,
)
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def inner_commands(command: ShellCommand) -> Iterator[ShellCommand]:
    """The commands that this one runs as its own words say."""
    program = command.program
    wrapper = WRAPPERS.get(program)
    if wrapper is not None:
        yield from _unwrapped(command, wrapper)
    elif program == "find":
        yield from _of_find(command)


def inner_words(command: ShellCommand) -> list[str]:
    """The words of a wrapper that are those of the command it runs."""
    wrapper = WRAPPERS.get(command.program, Wrapper("ctfq"))
    words = list(command.words[1:])
    if wrapper.subcommand:
        if wrapper.subcommand not in words:
            return []
        del words[: words.index(wrapper.subcommand) + 1]
    _skip_own(words, wrapper)
    return [] if command.program in {"su", "runuser", "at", "batch"} else words


def _unwrapped(command: ShellCommand, wrapper: Wrapper) -> Iterator[ShellCommand]:
    words = inner_words(command)
    if command.program == "xargs" and words:
        places = [word for word in command.words if word in {"-I", "-i", "--replace"}]
        mark = command.words[command.words.index("-I") + 1] if "-I" in places else "{}"
        words = [word.replace(mark, UNKNOWN_PART) for word in words] + ["--", UNKNOWN_PART]
    if words:
        is_elevated = command.is_elevated or wrapper.is_elevated
        yield command._replace(words=tuple(words), is_elevated=is_elevated)


def _skip_own(words: list[str], wrapper: Wrapper) -> None:
    """Drop what belongs to the wrapper itself."""
    positionals = wrapper.positionals
    while words:
        word = words[0]
        if word == "--":
            del words[0]
            wrapper = wrapper._replace(with_value="")
        elif word.startswith("-") and len(word) > 1:
            takes = len(word) == 2 and word[1] in wrapper.with_value
            del words[: 2 if takes else 1]
        elif word == "!" or re.match(wrapper.assigned, word):  # `time ! command` negates it
            del words[0]
        elif positionals:
            positionals -= 1
            del words[0]
        else:
            return


def _of_find(command: ShellCommand) -> Iterator[ShellCommand]:
    words = list(command.words)
    for place, word in enumerate(words):
        if word in FIND_RUNS:
            inner = words[place + 1 :]
            ends = [inner.index(end) for end in (";", "+") if end in inner]
            text = f"{words[1]}/somewhere/below"  # where the search starts
            inner = [text if item == "{}" else item for item in inner[: min(ends, default=None)]]
            yield command._replace(words=tuple(inner))


def inner_script(command: ShellCommand) -> str | None:
    """The text that this command runs as a script; UNKNOWN in it where it is not known."""
    program, words = command.program, command.words
    option = SCRIPT_OPTIONS.get(program)
    if option is not None and (text := _after_option(words, option)) is not None:
        return text
    if program in SHELLS:
        return _as_bash_reads(program, _of_shell(command))
    if program in TEXT_READERS and not inner_words(command):
        return _read_by(command)
    return _of_words(program, words, command)


def _of_words(program: str, words: tuple[str, ...], command: ShellCommand) -> str | None:
    """The script that the words of a command are."""
    text = None
    if program in RUNS_TEXT:
        rest = words[2:] if words[1:2] == ("--",) else words[1:]
        text = " ".join(rest[:1] if RUNS_TEXT[program] else rest)
    if program in JOINERS:
        text = " ".join(inner_words(command)).replace("{}", UNKNOWN_PART)
    if program == "git":
        text = "\n".join(_of_git(words))
    if program in {"source", "."} and len(words) > 1 and _is_no_file(words[1]):
        text = UNKNOWN_PART
    return text or None


def _of_git(words: tuple[str, ...]) -> Iterator[str]:
    """What Git gives to a shell: aliases, programs of its settings, and commands to repeat."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        known = name.replace(UNKNOWN_PART, "") + equals + value
        setting = GIT_SCRIPTS.match(known)
        if setting is not None:
            yield known[setting.end() :]
        elif words[place - 1 : place] == ("-c",) and UNKNOWN_PART in name:
            yield UNKNOWN_PART
        elif word in {"foreach", "run"}:
            yield " ".join(words[place + 1 :])
        elif word in {"-x", "--exec"} or word.endswith("-filter"):
            yield " ".join(words[place + 1 : place + 2])


def _after_option(words: tuple[str, ...], option: str) -> str | None:
    """The values of an option of one letter, each in a line: of several, one is used.

    A value is the rest of the option's word, or else the next word.
    """
    values: list[str] = []
    for place, word in enumerate(words[1:], 1):
        if word.startswith(("--split-string=", "--command=")):
            values.append(word.partition("=")[2])
        elif (bundle := re.match(rf"-\w*?{option[1]}(.*)", word, re.DOTALL)) is not None:
            values.append(bundle[1] or " ".join(words[place + 1 : place + 2]))
    return "\n".join(filter(None, values)) or None


def _of_shell(command: ShellCommand) -> str | None:
    """A shell runs the text after -c, a file, or what it reads."""
    words = command.words
    has_text = any(re.fullmatch(r"-\w*c\w*", word) for word in words[1:])
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"[-+]\w+", word) and not word.startswith("--"):
            if "c" in word and word[0] == "-":
                rest = [word for word in words[place + 1 :] if not re.fullmatch(r"[-+]\w+", word)]
                return rest[0] if rest else None
            if "s" in word and not has_text:
                return _read_by(command)
        elif word == "-":
            return _read_by(command)
        elif not word.startswith("-") and words[place - 1] not in {"-O", "-o", "--rcfile"}:
            return UNKNOWN_PART if _is_no_file(word) else None
    return _read_by(command)


def _as_bash_reads(program: str, script: str | None) -> str | None:
    """The script of a shell; one that bash reads in another way is not known.

    `((boom))` is arithmetic for bash, and runs boom in sh.
    """
    if script is None or program in BASH_NAMES:
        return script
    if program in POSIX_SHELLS:
        return script + UNKNOWN_PART if BASHISMS.search(script) else script
    return script if PLAIN_SCRIPT.fullmatch(script) else script + UNKNOWN_PART


def _is_no_file(word: str) -> bool:
    """Whether a script comes from a stream, or from who knows where."""
    return UNKNOWN_PART in word or word in {STREAM, "/dev/stdin"}


def _read_by(command: ShellCommand) -> str | None:
    if command.fed is not None:
        return command.fed
    return UNKNOWN_PART if command.is_fed else None
