"""Definition and validation of an achievement.

`achievement_from` reads both the packaged TOML files and the achievements of plugins.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_core.errors import CatalogueError
from hermes_core.json_values import text_in

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

DERIVED_VALUES: Final = {
    "agents_in_project": "The most agents that worked in one folder for a person.",
    "active_days": "Days on which a person wrote.",
    "longest_streak": ("The longest run of active days; one missed day in any seven is forgiven."),
    "longest_week_streak": "The most weeks in a row, Monday to Sunday, with an active day.",
    "perfect_weeks": "Weeks, Monday to Sunday, with all seven days active.",
    "active_months": "Months with an active day.",
    "longest_month_streak": "The most months in a row with an active day.",
    "improved_months": (
        "Months with at least 100 tool results whose share of failures is lower than in the "
        "previous such month."
    ),
    "longest_improvement": "The most improved months in a row.",
    "spotless_days": "Days with at least 25 tool results and no failure, once they are over.",
    "days_together": "Days from the first active day to the last.",
    "longest_absence": "The longest pause between two active days, in days.",
    "tidy_months": "Months with at least ten conversations of which 80 % have a title.",
    "clean_months": "Months with at least ten conversations of which 90 % were ended properly.",
    "tested_months": "Months with at least ten commits and at least as many passed test runs.",
}

CATALOGUE_FOLDER: Final = Path(__file__).parent
OWN_ORIGIN: Final = "hermes"
ACHIEVEMENT_ID: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
TEXT_FIELDS: Final = ("name", "text", "counts", "icon", "category", "unit")
ACHIEVEMENT_FIELDS: Final = frozenset(
    {"id", "kind", "value", "tiers", "goal", "tier", "secret", "hint", *TEXT_FIELDS}
)
ACHIEVEMENT_KINDS: Final = {
    "counter": "total",
    "session": "best session",
    "day": "best day",
    "streak": "streak",
    "ratio": "ratio",
    "first": "first time",
    "combination": "sequence in one session",
    "craft": "quality of work",
    "variety": "variety",
    "calendar": "time or date",
    "recovery": "success after failures",
    "peak": "maximum",
}


class Tier(NamedTuple):
    """A tier: `colour` is for light backgrounds, `glow` for dark ones."""

    id: str
    name: str
    colour: str
    glow: str


class Achievement(NamedTuple):
    """An achievement: a value, and the thresholds of its tiers."""

    id: str
    name: str
    text: str
    counts: str
    icon: str
    category: str
    kind: str
    value: str
    unit: str
    thresholds: tuple[tuple[str, int], ...]
    secret: bool = False
    hint: str = ""
    origin: str = OWN_ORIGIN

    @property
    def is_ladder(self) -> bool:
        """Whether it has several tiers."""
        return len(self.thresholds) > 1


@cache
def load_tiers() -> tuple[Tier, ...]:
    """The tiers, lowest first."""
    stored = tomllib.loads((CATALOGUE_FOLDER / "tiers.toml").read_text(encoding="utf-8"))
    return tuple(Tier(**item) for item in stored["tier"])


@cache
def known_values() -> frozenset[str]:
    """The names of all values that achievements can measure."""
    return frozenset(
        [
            *(f"total_{name}" for name in COUNTS),
            *(f"max_{name}_in_session" for name in COUNTS),
            *(f"max_{name}_in_day" for name in COUNTS),
            *(f"peak_{name}" for name in PEAKS),
            *(f"distinct_{name}" for name in VARIETY),
            *DERIVED_VALUES,
        ]
    )


def achievement_from(mapping: JsonObject, origin: str) -> Achievement:
    """Read an achievement from *mapping*; *origin* is its plugin or `hermes`."""
    name = _id(mapping)
    for field in mapping:
        if field not in ACHIEVEMENT_FIELDS:
            accepted = ", ".join(sorted(ACHIEVEMENT_FIELDS))
            raise CatalogueError(f"achievement {name}: unknown field {field!r}; use {accepted}")
    return check_achievement(
        Achievement(
            id=name,
            kind=_text(mapping, "kind"),
            value=_text(mapping, "value"),
            thresholds=_thresholds(mapping),
            secret=_is_secret(mapping),
            hint=_hint(mapping),
            origin=origin,
            **{field: _text(mapping, field) for field in TEXT_FIELDS},
        )
    )


def check_achievement(achievement: Achievement) -> Achievement:
    """Return the achievement if its kind, value and tiers are valid."""
    if achievement.kind not in ACHIEVEMENT_KINDS:
        raise _invalid_field(
            achievement.id, "kind", achievement.kind, f"one of {', '.join(ACHIEVEMENT_KINDS)}"
        )
    if achievement.value not in known_values():
        raise _invalid_field(
            achievement.id,
            "value",
            achievement.value,
            "total_, max_..._in_session or max_..._in_day with a count, peak_ with a peak, "
            f"distinct_ with a variety, or one of {', '.join(DERIVED_VALUES)}",
        )
    order = [tier.id for tier in load_tiers()]
    for tier, _ in achievement.thresholds:
        if tier not in order:
            raise _invalid_field(achievement.id, "tier", tier, f"one of {', '.join(order)}")
    _check_ascending(achievement, order)
    return achievement


def _check_ascending(achievement: Achievement, order: list[str]) -> None:
    ranks = [order.index(tier) for tier, _ in achievement.thresholds]
    numbers = [number for _, number in achievement.thresholds]
    if not numbers or min(numbers) < 1 or not (_rises(numbers) and _rises(ranks)):
        raise _invalid_field(
            achievement.id, "tiers", numbers, "numbers above zero, each larger than the last"
        )


def _rises(numbers: list[int]) -> bool:
    return all(low < high for low, high in pairwise(numbers))


def _id(mapping: JsonObject) -> str:
    result = mapping.get("id")
    if isinstance(result, str) and ACHIEVEMENT_ID.fullmatch(result):
        return result
    raise _invalid_field("without a usable id", "id", result, "lower-case words joined by dashes")


def _text(mapping: JsonObject, field: str) -> str:
    result = mapping.get(field)
    if isinstance(result, str) and result.strip():
        return result
    raise _invalid_field(text_in(mapping, "id"), field, result, "a non-empty string")


def _thresholds(mapping: JsonObject) -> tuple[tuple[str, int], ...]:
    """Thresholds of five tiers, or of one goal."""
    is_ladder = "tiers" in mapping
    if is_ladder in ("goal" in mapping, "tier" in mapping):
        raise CatalogueError(
            f"achievement {_id(mapping)}: give either `tiers`, five numbers, "
            "or `goal`, a number, together with `tier`, the tier it awards"
        )
    if not is_ladder:
        return ((_text(mapping, "tier"), _number(mapping, "goal", mapping["goal"])),)
    result, order = mapping["tiers"], load_tiers()
    if not isinstance(result, (list, tuple)) or len(result) != len(order):
        raise _invalid_field(
            text_in(mapping, "id"), "tiers", result, f"a list of {len(order)} numbers"
        )
    numbers = [_number(mapping, "tiers", number) for number in result]
    return tuple((tier.id, number) for tier, number in zip(order, numbers, strict=True))


def _number(mapping: JsonObject, field: str, value: Any) -> int:
    if type(value) is int and value > 0:
        return value
    raise _invalid_field(text_in(mapping, "id"), field, value, "whole numbers above zero")


def _is_secret(mapping: JsonObject) -> bool:
    secret = mapping.get("secret", False)
    if isinstance(secret, bool):
        return secret
    raise _invalid_field(text_in(mapping, "id"), "secret", secret, "true or false")


def _hint(mapping: JsonObject) -> str:
    if _is_secret(mapping):
        return _text(mapping, "hint")
    if "hint" in mapping:
        raise _invalid_field(
            text_in(mapping, "id"), "hint", mapping["hint"], "a hint only where secret is true"
        )
    return ""


def _invalid_field(name: str, field: str, value: object, accepted: str) -> CatalogueError:
    problem = "is missing" if value is None else f"is {value!r}"
    return CatalogueError(f"achievement {name}: {field} {problem}; accepted: {accepted}")
