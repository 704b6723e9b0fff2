"""The catalogue of achievements: one TOML file per category.

    *.toml      the achievements by category; tiers.toml defines the tiers
    icons.json  SVG shapes of the icons, from Lucide (LUCIDE-LICENSE.txt)

IDs of achievements are stored with unlocks: they are never renamed or reused.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, cast
from zlib import crc32

from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_core.errors import CatalogueError, ConfigError
from hermes_core.json_values import text_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_core.json_values import JsonObject

    Choice = tuple[frozenset[str], tuple["Achievement", ...]]


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


__all__ = [
    "ACHIEVEMENT_KINDS",
    "DERIVED_VALUES",
    "Achievement",
    "Catalogue",
    "CatalogueOutline",
    "Category",
    "Tier",
    "achievement_from",
    "checksum",
    "icons",
    "known_values",
    "load",
    "load_outline",
]

TIERS_FILE: Final = "tiers.toml"
FIRST_ACHIEVEMENT: Final = "[[achievement]]"


class Category(NamedTuple):
    """A category of the catalogue; `order` is its position."""

    id: str
    name: str
    text: str
    order: int


class CatalogueOutline(NamedTuple):
    """The tiers and categories of the catalogue, without its achievements."""

    tiers: tuple[Tier, ...]
    categories: tuple[Category, ...]


class Catalogue:
    """Achievements in order, with their tiers and categories."""

    def __init__(
        self,
        tiers: tuple[Tier, ...],
        categories: tuple[Category, ...],
        achievements: tuple[Achievement, ...] = (),
    ) -> None:
        self.tiers = tiers
        self.categories = categories
        self.achievements = achievements
        self._by_id = {achievement.id: achievement for achievement in achievements}

    def __iter__(self) -> Iterator[Achievement]:
        return iter(self.achievements)

    def __len__(self) -> int:
        return len(self.achievements)

    def by_id(self, achievement_id: str) -> Achievement | None:
        """The achievement with an ID, or None."""
        return self._by_id.get(achievement_id)

    def with_added(self, achievements: Iterable[Achievement]) -> Catalogue:
        """The catalogue with more achievements; invalid ones raise CatalogueError."""
        by_id = dict(self._by_id)
        icon_drawings = icons()
        for achievement in achievements:
            self._check(achievement, by_id, icon_drawings)
            by_id[achievement.id] = achievement
        return Catalogue(self.tiers, self.categories, tuple(by_id.values()))

    def _check(
        self, achievement: Achievement, by_id: dict[str, Achievement], icon_drawings: dict[str, str]
    ) -> None:
        existing = by_id.get(achievement.id)
        if existing is not None:
            raise CatalogueError(
                f"achievement {achievement.id} of {achievement.origin}: {existing.origin} "
                "already has one with this id; choose another"
            )
        categories = [category.id for category in self.categories]
        if achievement.category not in categories:
            raise CatalogueError(
                f"achievement {achievement.id}: category is {achievement.category!r}; "
                f"accepted: one of {', '.join(categories)}"
            )
        if achievement.icon not in icon_drawings:
            raise CatalogueError(
                f"achievement {achievement.id}: icon is {achievement.icon!r}; "
                f"accepted: one of {', '.join(icon_drawings)}"
            )
        check_achievement(achievement)


def load() -> Catalogue:
    """The built-in catalogue."""
    categories = [_load_category(path) for path in _category_files()]
    categories.sort(key=lambda entry: entry[0].order)
    empty = Catalogue(load_tiers(), tuple(category for category, _ in categories))
    return empty.with_added(
        achievement for _, achievements in categories for achievement in achievements
    )


@cache
def load_outline() -> CatalogueOutline:
    """The outline of the catalogue, in a fraction of the time of `load`."""
    heads = [
        path.read_text(encoding="utf-8").partition(FIRST_ACHIEVEMENT)[0]
        for path in _category_files()
    ]
    categories = [Category(**_parse(head)["category"]) for head in heads]
    categories.sort(key=lambda category: category.order)
    return CatalogueOutline(load_tiers(), tuple(categories))


@cache
def checksum() -> int:
    """A checksum of the files of the built-in catalogue."""
    files = [CATALOGUE_FOLDER / TIERS_FILE, *_category_files()]
    return crc32(b"".join(path.read_bytes() for path in files))


def _category_files() -> list[Path]:
    return [path for path in sorted(CATALOGUE_FOLDER.glob("*.toml")) if path.name != TIERS_FILE]


def icons() -> dict[str, str]:
    """SVG shapes of the icons by name, for a 24 by 24 view box."""
    data: dict[str, str] = json.loads((CATALOGUE_FOLDER / "icons.json").read_text(encoding="utf-8"))
    return data


class CategoryFile(TypedDict):
    """A file of the catalogue: a category and its achievements."""

    category: dict[str, Any]
    achievement: list[JsonObject]


def _parse(text: str) -> CategoryFile:
    return cast("CategoryFile", tomllib.loads(text))


def _load_category(path: Path) -> tuple[Category, list[Achievement]]:
    stored = _parse(path.read_text(encoding="utf-8"))
    category = Category(**stored["category"])
    return category, [
        achievement_from({**item, "category": category.id}, OWN_ORIGIN)
        for item in stored["achievement"]
    ]


log = logging.getLogger(__name__)

SETTINGS_CHECK_SECONDS: Final = 1.0  # interval of the checks of the settings


class UserCatalogue:
    """The catalogue of a user; follows changed settings while the process runs."""

    def __init__(
        self, added: Callable[[], Iterable[Achievement]], hidden: Callable[[], Iterable[str]]
    ) -> None:
        self._added = added
        self._hidden = hidden
        self._lock = threading.Lock()
        self._choice: Choice | None = None
        self._catalogue: Catalogue | None = None  # loaded when it is needed: parsing takes long
        self._checked_at = float("-inf")

    def current(self) -> Catalogue:
        """The current catalogue."""
        with self._lock:
            choice = self._current_choice()
            if self._catalogue is None:
                self._catalogue = _catalogue(*choice)
            return self._catalogue

    def id(self) -> int:
        """A checksum of the current catalogue."""
        with self._lock:
            hidden, added = self._current_choice()
        return crc32(repr((sorted(hidden), added)).encode(), checksum())

    def invalidate(self) -> None:
        """Read the settings again on the next access."""
        self._checked_at = float("-inf")

    def _current_choice(self) -> Choice:
        now = time.monotonic()
        if self._choice is None or now - self._checked_at >= SETTINGS_CHECK_SECONDS:
            choice = self._read_choice()
            if choice != self._choice:
                self._choice, self._catalogue = choice, None
            self._checked_at = now
            return choice
        return self._choice

    def _read_choice(self) -> Choice:
        try:
            return frozenset(self._hidden()), tuple(self._added())
        except ConfigError as error:
            if self._choice is None:
                raise
            log.warning("hidden achievements not updated: %s", error)
            return self._choice


def _catalogue(hidden: frozenset[str], added: tuple[Achievement, ...]) -> Catalogue:
    complete = load().with_added(added)
    visible = tuple(item for item in complete if item.id not in hidden)
    return Catalogue(complete.tiers, complete.categories, visible)
