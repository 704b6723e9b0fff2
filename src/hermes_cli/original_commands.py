"""Command lines of hermes-agent that have a meaning here, and where to find the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The words of hermes-agent, and ours.
ALIASES: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("config", "show"): ("config", "list"),
    ("logs",): ("gateway", "logs"),
    ("model",): ("setup",),
    ("status",): ("doctor",),
    ("version",): ("--version",),
    ("-z",): ("chat", "-q"),
}
INSIGHTS: Final = "insights"
WEEK_DAYS: Final = 7
MONTH_DAYS: Final = 31
NOT_HERE: Final = {
    "auth": "API keys are settings: see `hermes setup` and `hermes config list`.",
    "login": "API keys are settings: see `hermes setup`.",
    "logout": "API keys are settings: see `hermes config unset keys.NAME`.",
    "profile": "A profile is a folder: HERMES_HOME=FOLDER hermes. "
    "`hermes import hermes-agent --profile NAME` imports one.",
    "skills": "Skills are folders in skills/ in the Hermes folder.",
    "tools": "What tools may do is set with `hermes permissions`.",
    "uninstall": "`hermes install --remove` removes it from your PATH; `hermes backup` saves the "
    "Hermes folder before you remove it.",
    "webhook": "Webhooks are a platform of the gateway: see `hermes gateway --help`.",
}


def may_be_original(arguments: Sequence[str]) -> bool:
    """Whether the first words are a command of hermes-agent."""
    first = arguments[0]
    return first in NOT_HERE or first == INSIGHTS or _alias(arguments) is not None


def translate(arguments: Sequence[str]) -> list[str]:
    """The command line in our words; UsageError for what is not available here."""
    if arguments[0] in NOT_HERE:
        raise UsageError(f"`hermes {arguments[0]}` is not available here. {NOT_HERE[arguments[0]]}")
    if arguments[0] == INSIGHTS:
        return ["recap", *_period(arguments[1:])]
    alias = _alias(arguments)
    return [*ALIASES[alias], *arguments[len(alias) :]] if alias else list(arguments)


def _alias(arguments: Sequence[str]) -> tuple[str, ...] | None:
    return next((words for words in ALIASES if tuple(arguments[: len(words)]) == words), None)


def _period(arguments: Sequence[str]) -> list[str]:
    """`--days N` as the period that contains it; other options as they are."""
    words = " ".join(arguments).replace("--days=", "--days ").split()
    if "--days" not in words:
        return ["--month", *words]
    position = words.index("--days")
    text = words[position + 1] if len(words) > position + 1 else ""
    if not text.isdecimal():
        raise UsageError(f"invalid number of days {text!r}")
    days = int(text)
    period = "--week" if days <= WEEK_DAYS else "--month" if days <= MONTH_DAYS else "--year"
    return [period, *words[:position], *words[position + 2 :]]
