"""Commands that need approval: destructive, remote or persistent effects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.permissions import sed_script
from hermes_agent.permissions.forbidden import hides_options
from hermes_agent.permissions.nested_commands import INTERPRETERS
from hermes_agent.permissions.path_zones import split_options, write_findings
from hermes_agent.permissions.shell_words import UNKNOWN_PART, word_set
from hermes_agent.permissions.verdicts import Level, RiskFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.permissions.path_zones import PathContext
    from hermes_agent.permissions.shell_script import ShellCommand

    Rule = Callable[[ShellCommand], Iterator[RiskFinding]]

VALUE_OPTIONS = word_set(
    "-C -c --git-dir --work-tree --namespace --exec-path --config-env --attr-source --super-prefix"
)
READING_SUBCOMMANDS = word_set(
    "status log diff show blame grep ls-files ls-tree ls-remote rev-parse rev-list describe "
    "shortlog cat-file name-rev merge-base for-each-ref count-objects whatchanged help version "
    "check-ignore var"
)


def subcommand(command: ShellCommand) -> tuple[str, ...]:
    """The words of a Git command from its subcommand on."""
    words = list(command.words[1:])
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in VALUE_OPTIONS else 1]
    return tuple(words)


def reads(command: ShellCommand) -> bool:
    """Whether a Git command changes nothing and starts no other program."""
    words = subcommand(command)
    own = command.words[1 : len(command.words) - len(words)]
    has_hook = any(
        word in {"-c", "--exec-path", "--config-env"} or word.startswith("--exec-path")
        for word in own
    )
    runs = any(
        re.match(r"--(ext-diff|textconv|output|open-files|upload-pack)|-O", word) for word in words
    )
    if has_hook or runs or not words:
        return False
    if words[0] in {"branch", "tag", "remote", "stash", "config", "worktree", "reflog", "notes"}:
        return set(words[1:]) <= {"-l", "--list", "-a", "-r", "-v", "-vv", "--show-current", "list"}
    return words[0] in READING_SUBCOMMANDS


def git_findings(command: ShellCommand, context: PathContext) -> Iterator[RiskFinding]:
    """What is asked for in one Git command."""
    words = subcommand(command)
    if not words:
        return
    if not reads(command):
        for place, word in enumerate(command.words[:-1]):
            if word in {"-C", "--git-dir", "--work-tree"}:
                yield from write_findings(command.words[place + 1], context)
    options = words[1:]
    key = _loss(words[0], options)
    if key:
        yield RiskFinding(key, LOSS_REASONS[key])
    if words[0] == "config" and set(options) & {"--global", "--system"} and not set(options) & {
        "--list", "-l", "--get",
    }:  # fmt: skip
        yield RiskFinding("home-dotfile", "changes your Git settings")
    if (
        words[0] == "clone"
        and len([option for option in options if not option.startswith("-")]) > 1
    ):
        yield from write_findings(options[-1], context)
    for text in _started(command, words):
        yield RiskFinding("computed-script", f"starts another program from Git: {text[:60]}")


def _started(command: ShellCommand, words: tuple[str, ...]) -> Iterator[str]:
    """Other programs that Git would run on the way."""
    for word in command.words:
        if re.match(
            r"(alias\.[^=]*=|core\.(sshcommand|pager|editor|fsmonitor|hookspath)=)",
            word,
            re.IGNORECASE,
        ):
            yield word
    if words[:2] in {("bisect", "run"), ("submodule", "foreach")} or words[0] == "filter-branch":
        yield " ".join(words)
    if words[0] == "rebase" and any(re.match(r"(-x|--exec)", word) for word in words):
        yield " ".join(words)


LOSS_REASONS = {
    "git-push-force": "overwrites or deletes history on a server",
    "git-reset-hard": "discards uncommitted work",
    "git-clean": "deletes untracked files",
    "git-discard": "discards uncommitted work or branches",
    "git-rewrite": "rewrites or removes history permanently",
}


def _has(options: tuple[str, ...], letters: str, *names: str) -> bool:
    return any(
        any(option.startswith(name) or (len(option) > 2 and name.startswith(option))
            for name in names) if option.startswith("--") else
        bool(re.fullmatch(r"-\w+", option)) and any(letter in option for letter in letters)
        for option in options
    )  # fmt: skip


def _loss(verb: str, options: tuple[str, ...]) -> str:
    """The key of what would be lost; empty when nothing would be."""
    pushes = [option for option in options if option.startswith((":", "+"))]
    checks = {
        "push": ("git-push-force", bool(pushes) or _has(options, "fd", "--force", "--delete",
                                                        "--mirror", "--prune")),
        "reset": ("git-reset-hard", _has(options, "", "--hard", "--merge", "--keep")),
        "clean": ("git-clean", not _has(options, "n", "--dry-run")),
        "checkout": ("git-discard", bool({"--", "."} & set(options)) or
                     _has(options, "f", "--force")),
        "switch": ("git-discard", _has(options, "f", "--force", "--discard")),
        "restore": ("git-discard", not _has(options, "S", "--staged") or
                    _has(options, "W", "--worktree")),
        "branch": ("git-discard", _has(options, "D") or
                   (_has(options, "d", "--delete") and _has(options, "f", "--force"))),
        "stash": ("git-discard", bool({"drop", "clear"} & set(options))),
        "worktree": ("git-discard", "remove" in options and _has(options, "f", "--force")),
        "filter-branch": ("git-rewrite", True),
        "filter-repo": ("git-rewrite", True),
        "update-ref": ("git-rewrite", _has(options, "d", "--stdin")),
        "reflog": ("git-rewrite", bool({"expire", "delete"} & set(options))),
        "gc": ("git-rewrite", _has(options, "", "--prune")),
        "prune": ("git-rewrite", True),
    }  # fmt: skip
    key, is_loss = checks.get(verb, ("", False))
    return key if is_loss else ""


SIMPLE_RISKS: dict[str, tuple[str, str] | tuple[str, str, Level]] = {
    "crontab": ("crontab", "changes scheduled jobs"),
    "at": ("crontab", "schedules a command"),
    "batch": ("crontab", "schedules a command"),
    "systemctl": ("systemctl", "changes system services"),
    "service": ("systemctl", "changes system services"),
    "launchctl": ("systemctl", "changes system services"),
    "rc-service": ("systemctl", "changes system services"),
    **dict.fromkeys(
        ("ssh", "scp", "sftp", "mosh", "telnet"), ("ssh", "connects to another machine")
    ),
    **dict.fromkeys(("kill", "pkill", "killall", "xkill"), ("kill", "kills processes")),
    **dict.fromkeys(
        ("sudo", "doas", "su", "pkexec", "run0"), ("sudo", "runs with other privileges (sudo)")
    ),
    **dict.fromkeys(
        ("iptables", "nft", "ufw", "firewall-cmd", "ip6tables"),
        ("firewall", "changes the firewall"),
    ),
    **dict.fromkeys(
        ("mount", "umount", "swapoff", "losetup", "modprobe", "insmod", "rmmod", "sysctl"),
        ("system-settings", "changes the running system"),
    ),
    **dict.fromkeys(
        ("useradd", "userdel", "usermod", "passwd", "groupadd", "visudo", "chpasswd", "adduser"),
        ("system-users", "changes system users"),
    ),
    **dict.fromkeys(("dropdb", "dropuser"), ("sql-delete", "deletes data from a database")),
    "alias": ("computed-command", "redefines commands", Level.DOUBT),
    "shred": ("rm-recursive", "destroys files permanently"),
}
PACKAGERS = re.compile(
    r"apt|apt-get|aptitude|dnf|yum|zypper|pacman|apk|brew|port|snap|flatpak|dpkg|rpm|emerge|nix-env"
)
PACKAGE_READS = word_set(
    "list search show info policy depends rdepends files changelog help cache outdated deps "
    "--version -v --help -l -s -L -S -Q -Qi -Ql -Ss -Si -qa -qi -ql doctor config leaves"
)
INSTALLS = frozenset({"install", "i", "add", "uninstall", "remove", "rm", "update", "upgrade"})
CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose"})
CONTAINER_LOSSES = frozenset({"prune", "rm", "rmi", "kill", "down"})
CONTAINER_NOUNS = word_set("container image volume network system builder buildx compose pod")
DATABASES = word_set(
    "psql mysql mariadb sqlite3 mongosh mongo redis-cli duckdb clickhouse-client sqlcmd mysqladmin "
    "cqlsh influx"
)
DATA_LOSS = re.compile(
    r"\b(drop|delete|truncate|alter|flushall|flushdb|dropdatabase|deletemany|deleteone|unlink)\b",
    re.IGNORECASE,
)
# The option before code, or with the code in the same word.
INLINE_CODE_OPTION = re.compile(
    r"-(?:\w*[ceEr]|-eval|-print|p|pe|ne)|-\w*[ceEr]\w*\W.*|--(?:eval|print)=.*", re.DOTALL
)
SUSPICIOUS_CODE = re.compile(
    r"rmtree|\bremove\b|unlink|rmdir|\bsystem\b|subprocess|popen|\bexec|\beval|spawn|child_process"
    r"|\brm\b|rename|shutil|/dev/|mkfs|base64|ctypes|\bkill|truncate|chmod|chown|__import__|getattr"
    r"|\bopen\([^)]*,\s*(mode\s*=\s*)?['\"][rb]?[wax+]|write_text|write_bytes|writeFile|file_put|urlopen|`|\bfork\b",
    re.IGNORECASE,
)
DESTROYS_ALL = re.compile(
    r"\brm\s+(?:\S+\s+)*?-\w*[rR]\w*\s+(?:\S+\s+)*?['\"]?(?:/|~|\$\{?HOME\}?)/?(?![\w.~/])"
    r"|rmtree\(['\"]/?['\"]"
)


def findings(command: ShellCommand) -> Iterator[RiskFinding]:
    """What is asked for in one simple command."""
    program = command.program
    if program in SIMPLE_RISKS and not _only_reads(command):
        yield RiskFinding(*SIMPLE_RISKS[program])
    if PACKAGERS.fullmatch(program):
        yield from _system_packages(command)
    if INTERPRETERS.fullmatch(program) or program in {"awk", "gawk", "mawk"}:
        yield from inline_code(command)
    if program in {"sed", "gsed"} and not sed_script.is_plain(command.words[1:]):
        reason = "may run a program inside a sed script"
        yield RiskFinding("inline-code", reason, Level.DOUBT)
    if program in DATABASES:
        yield from _database(command)
    rule = RULES.get(program)
    if rule is not None:
        yield from rule(command)


def _only_reads(command: ShellCommand) -> bool:
    """Forms of these programs that change nothing."""
    words = set(command.words[1:])
    looks = {
        "crontab": {"-l"},
        "systemctl": {"status", "list-units", "is-active", "is-enabled", "show", "cat"},
        "service": {"status", "--status-all"},
        "kill": {"-l", "-0", "-L"},
        "mount": {"-l"},
        "sudo": set(),
        "sysctl": {"-a", "-n"},
        "ufw": {"status"},
    }.get(command.program, set())
    if command.program == "kill" and all(word.startswith("%") for word in words):
        return True  # jobs of its own shell
    return bool(words & looks) or (command.program == "mount" and not words)


def _system_packages(command: ShellCommand) -> Iterator[RiskFinding]:
    words = command.words[1:]
    first = next((word for word in words if not word.startswith("-")), "")
    if words and first not in PACKAGE_READS and words[0] not in PACKAGE_READS:
        yield RiskFinding("system-packages", "installs or removes system packages")


def inline_code(command: ShellCommand) -> Iterator[RiskFinding]:
    """Code in the command line of an interpreter, read for words that do harm."""
    words = command.words
    if command.program.endswith("awk"):
        code = " ".join(words[1:])
        is_bad = re.search(r"system\s*\(|\|\s*(getline|\"|&)|\bprint[^;}]*>|-f\b", code) is not None
        if DESTROYS_ALL.search(code):
            yield RiskFinding(
                "delete-everything", "runs code that may delete everything", Level.DOUBT
            )
        if is_bad or UNKNOWN_PART in code:
            yield RiskFinding("inline-code", "runs a program inside an awk script")
        return
    places = [
        place for place, word in enumerate(words[1:], 1) if INLINE_CODE_OPTION.fullmatch(word)
    ]
    code = "\n".join(words[places[0] :]) if places else ""
    if len(words) == 1 or words[1] == "-":
        code += command.fed if command.fed is not None else ""
    if DESTROYS_ALL.search(code):
        yield RiskFinding("delete-everything", "runs code that may delete everything", Level.DOUBT)
    if SUSPICIOUS_CODE.search(code) or (places and UNKNOWN_PART in code):
        yield RiskFinding("inline-code", "runs code that may change files or start programs")


def _database(command: ShellCommand) -> Iterator[RiskFinding]:
    text = " ".join((*command.words[1:], command.fed or ""))
    if DATA_LOSS.search(text) or (command.is_fed and command.fed is None):
        yield RiskFinding("sql-delete", "deletes or changes data in a database")


def _remove(command: ShellCommand) -> Iterator[RiskFinding]:
    if split_options(command).has("rR", "--recursive") or hides_options(command):
        yield RiskFinding("rm-recursive", "deletes folders recursively")


def _find(command: ShellCommand) -> Iterator[RiskFinding]:
    if "-delete" in command.words:
        yield RiskFinding("find-delete", "deletes every match")


def _rights(command: ShellCommand) -> Iterator[RiskFinding]:
    if split_options(command).has("R", "--recursive"):
        name = "chmod-recursive" if command.program == "chmod" else "chown-recursive"
        yield RiskFinding(name, "changes permissions recursively")


def _rsync(command: ShellCommand) -> Iterator[RiskFinding]:
    if any(word.startswith(("--delete", "--remove-source")) for word in command.words):
        yield RiskFinding("rm-recursive", "deletes files that are missing in the source")
    if any(re.match(r"[\w.@-]+:", word) for word in split_options(command).positionals):
        yield RiskFinding("ssh", "connects to another machine")


def _containers(command: ShellCommand) -> Iterator[RiskFinding]:
    result = split_options(command)
    words = [word for word in result.positionals if word not in CONTAINER_NOUNS]
    if set(words[:1]) & CONTAINER_LOSSES:
        yield RiskFinding("docker-remove", "removes containers, images or volumes")
    if result.has("", "--privileged") or any(
        re.match(r"/:|.*docker\.sock", argument) for argument in result.positionals
    ):
        yield RiskFinding("docker-host", "gives a container access to the entire machine")


def _cluster(command: ShellCommand) -> Iterator[RiskFinding]:
    losses = {"delete", "drain", "uninstall", "destroy", "replace", "apply", "rollback", "scale"}
    if set(split_options(command).positionals[:3]) & losses:
        yield RiskFinding("kubectl-delete", "changes or deletes cluster or cloud resources")


def _pip(command: ShellCommand) -> Iterator[RiskFinding]:
    """Into an environment of the project it is free; anything else is the user's Python."""
    result = split_options(command)
    words = [word for word in result.positionals if word not in {"pip", "-m"}]
    if not words or words[0] not in {"install", "uninstall", "sync"}:
        return
    is_global = result.has("", "--user", "--break-system-packages", "--system")
    is_local = "/" in command.words[0] or command.program == "uv"
    if is_global or not is_local:
        yield RiskFinding("global-packages", "installs packages outside the project")


def _node_packages(command: ShellCommand) -> Iterator[RiskFinding]:
    result = split_options(command)
    if (result.has("g", "--global") or "global" in result.positionals) and (
        set(result.positionals) & (INSTALLS | {"link"})
    ):
        yield RiskFinding("global-packages", "installs packages outside the project")
    if "publish" in result.positionals[:1] or "unpublish" in result.positionals[:1]:
        yield RiskFinding("publish", "publishes a package")


def _home_packages(command: ShellCommand) -> Iterator[RiskFinding]:
    words = split_options(command).positionals
    if words and words[0] in {"install", "uninstall"}:
        yield RiskFinding("global-packages", "installs programs outside the project")
    if words and words[0] in {"publish", "push", "yank"}:
        yield RiskFinding("publish", "publishes a package")


def _python(command: ShellCommand) -> Iterator[RiskFinding]:
    words = command.words
    if "-m" in words[:-1] and words[words.index("-m") + 1] == "pip":
        yield from _pip(command._replace(words=(words[0], *words[words.index("-m") + 2 :])))


RULES: dict[str, Rule] = {
    "rm": _remove,
    "find": _find,
    **dict.fromkeys(("chmod", "chown", "chgrp"), _rights),
    "rsync": _rsync,
    **dict.fromkeys(CONTAINERS, _containers),
    **dict.fromkeys(("kubectl", "oc", "helm", "terraform", "tofu", "pulumi"), _cluster),
    **dict.fromkeys(("pip", "pip3", "uv", "pipx"), _pip),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _node_packages),
    **dict.fromkeys(("gem", "cargo", "go"), _home_packages),
    **dict.fromkeys(("python", "python3", "python3.11", "python3.12", "python3.13"), _python),
}
