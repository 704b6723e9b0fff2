"""The catalogue of achievements: one TOML file per category.

    *.toml          the achievements by category; tiers.toml defines the tiers
    icons.json      SVG shapes of the icons, from Lucide (LUCIDE-LICENSE.txt)
    entries         definition and validation of an achievement
    user_catalogue  the catalogue with achievements of plugins, without hidden ones

IDs of achievements are stored with unlocks: they are never renamed or reused.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, cast
from zlib import crc32

from hermes_achievements.catalogue.entries import (
    ACHIEVEMENT_KINDS,
    CATALOGUE_FOLDER,
    DERIVED_VALUES,
    OWN_ORIGIN,
    Achievement,
    Tier,
    achievement_from,
    check_achievement,
    known_values,
    load_tiers,
)
from hermes_core.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject

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
