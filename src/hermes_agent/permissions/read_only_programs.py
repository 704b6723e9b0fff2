"""Programs that only read: what the mode read_only lets run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.permissions import git_risks
from hermes_agent.permissions.shell_words import UNKNOWN, word_set

if TYPE_CHECKING:
    from hermes_agent.permissions.shell_script import Command

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
EXCEPT = {
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


def only_reads(command: Command) -> bool:
    """Whether this command is known to change nothing."""
    program, words = command.program, command.words[1:]
    if program not in READERS or "/" in command.words[0].removeprefix("/usr/bin/").removeprefix(
        "/bin/"
    ):
        return False
    if program == "git" and not any(word.startswith(UNKNOWN) for word in words):
        return git_risks.reads(command)
    if program in {"sed", "git"}:
        return program == "sed" and _sed_reads(words)
    if program in {"uniq", "xxd"}:  # the second file is written
        return len([word for word in words if not word.startswith("-")]) < 2 and "-r" not in words
    exception = EXCEPT.get(program)
    if exception is not None and any(word.startswith(UNKNOWN) for word in words):
        return False  # it may be an option
    return exception is None or not any(exception.fullmatch(word) for word in words)


def _sed_reads(words: tuple[str, ...]) -> bool:
    """`sed -n 1,20p` and the like; other scripts may write files or run programs."""
    options = [word for word in words if word.startswith("-")]
    rest = [word for word in words if not word.startswith("-")]
    if any(option not in {"-n", "-E", "-r", "--quiet"} for option in options) or not rest:
        return False
    return all(PLAIN_SED.fullmatch(f"{part};") for part in rest[0].split(";") if part.strip())
