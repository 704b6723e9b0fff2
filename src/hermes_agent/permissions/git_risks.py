"""What is asked for in Git: work that would be lost, history that others hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.permissions.file_writes import judged
from hermes_agent.permissions.shell_words import word_set
from hermes_agent.permissions.verdicts import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.permissions.path_zones import Ground
    from hermes_agent.permissions.shell_script import Command

WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
READS = word_set(
    "status log diff show blame grep ls-files ls-tree ls-remote rev-parse rev-list describe "
    "shortlog cat-file name-rev merge-base for-each-ref count-objects whatchanged help version "
    "check-ignore var"
)


def subcommand(command: Command) -> tuple[str, ...]:
    """The words of a Git command from its subcommand on."""
    words = list(command.words[1:])
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in WITH_VALUE else 1]
    return tuple(words)


def reads(command: Command) -> bool:
    """Whether a Git command changes nothing and starts no other program."""
    words = subcommand(command)
    own = command.words[1 : len(command.words) - len(words)]
    has_hook = any(
        word in {"-c", "--exec-path", "--config-env"} or word.startswith("--exec-path")
        for word in own
    )
    runs = any(
        re.match(r"--(ext-diff|textconv|output|open-files|upload-pack)|-O", one) for one in words
    )
    if has_hook or runs or not words:
        return False
    if words[0] in {"branch", "tag", "remote", "stash", "config", "worktree", "reflog", "notes"}:
        return set(words[1:]) <= {"-l", "--list", "-a", "-r", "-v", "-vv", "--show-current", "list"}
    return words[0] in READS


def git_findings(command: Command, ground: Ground) -> Iterator[Finding]:
    """What is asked for in one Git command."""
    words = subcommand(command)
    if not words:
        return
    if not reads(command):
        for place, word in enumerate(command.words[:-1]):
            if word in {"-C", "--git-dir", "--work-tree"}:
                yield from judged(command.words[place + 1], ground)
    options = words[1:]
    key = _loss(words[0], options)
    if key:
        yield Finding(key, LOSSES[key])
    if words[0] == "config" and set(options) & {"--global", "--system"} and not set(options) & {
        "--list", "-l", "--get",
    }:  # fmt: skip
        yield Finding("home-dotfile", "changes your settings of Git")
    if words[0] == "clone" and len([one for one in options if not one.startswith("-")]) > 1:
        yield from judged(options[-1], ground)
    for text in _started(command, words):
        yield Finding("computed-script", f"starts another program from Git: {text[:60]}")


def _started(command: Command, words: tuple[str, ...]) -> Iterator[str]:
    """Other programs that Git would run on the way."""
    for word in command.words:
        if re.match(
            r"(alias\.\w+=!|core\.(sshcommand|pager|editor|fsmonitor|hookspath)=)",
            word,
            re.IGNORECASE,
        ):
            yield word
    if words[:2] in {("bisect", "run"), ("submodule", "foreach")} or words[0] == "filter-branch":
        yield " ".join(words)
    if words[0] == "rebase" and any(re.match(r"(-x|--exec)", one) for one in words):
        yield " ".join(words)


LOSSES = {
    "git-push-force": "overwrites or deletes history on a server",
    "git-reset-hard": "throws uncommitted work away",
    "git-clean": "deletes files that Git does not know",
    "git-discard": "throws uncommitted work or branches away",
    "git-rewrite": "rewrites or removes history for good",
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
    pushes = [one for one in options if one.startswith((":", "+"))]
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
