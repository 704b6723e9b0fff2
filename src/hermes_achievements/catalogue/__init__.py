"""The catalogue of achievements, as data: one TOML file for each category.

    *.toml       the achievements, by category; tiers.toml names the tiers
    icons.json   the drawings of all icons used, from Lucide (LUCIDE-LICENSE.txt)
    entries      one achievement, and how a mapping becomes one
    derived      values that are worked out from days, weeks and months

An achievement's id is for ever: it may be added, but neither renamed nor given away.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.catalogue.entries import (
    ACHIEVEMENT_KINDS,
    DERIVED,
    FOLDER,
    OWN,
    Achievement,
    Tier,
    achievement_from,
    check,
    known_values,
    tiers,
)
from hermes_core.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = [
    "ACHIEVEMENT_KINDS",
    "DERIVED",
    "Achievement",
    "Catalogue",
    "Category",
    "Tier",
    "achievement_from",
    "icons",
    "known_values",
    "load",
]

TIERS_FILE: Final = "tiers.toml"


class Category(NamedTuple):
    """A chapter of the catalogue; `order` is its place among the others."""

    id: str
    name: str
    text: str
    order: int


class Catalogue:
    """Achievements in order, with the tiers and categories they name."""

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
        """The achievement with that id; None when there is none."""
        return self._by_id.get(achievement_id)

    def with_added(self, achievements: Iterable[Achievement]) -> Catalogue:
        """This catalogue and some more; what does not fit in is refused."""
        known = dict(self._by_id)
        drawn = icons()
        for achievement in achievements:
            self._check(achievement, known, drawn)
            known[achievement.id] = achievement
        return Catalogue(self.tiers, self.categories, tuple(known.values()))

    def _check(
        self, one: Achievement, known: dict[str, Achievement], drawn: dict[str, str]
    ) -> None:
        taken = known.get(one.id)
        if taken is not None:
            raise CatalogueError(
                f"achievement {one.id} of {one.origin}: {taken.origin} already has one with "
                "this id; choose another"
            )
        categories = [category.id for category in self.categories]
        if one.category not in categories:
            raise CatalogueError(
                f"achievement {one.id}: category is {one.category!r}; "
                f"accepted: one of {', '.join(categories)}"
            )
        if one.icon not in drawn:
            raise CatalogueError(
                f"achievement {one.id}: icon is {one.icon!r}; accepted: one of {', '.join(drawn)}"
            )
        check(one)


def load() -> Catalogue:
    """The catalogue that comes with the program."""
    chapters = [_chapter(path) for path in sorted(FOLDER.glob("*.toml")) if path.name != TIERS_FILE]
    chapters.sort(key=lambda chapter: chapter[0].order)
    empty = Catalogue(tiers(), tuple(category for category, _ in chapters))
    return empty.with_added(
        achievement for _, achievements in chapters for achievement in achievements
    )


def icons() -> dict[str, str]:
    """The drawing of each icon by its name: what stands inside a 24 by 24 SVG."""
    data: dict[str, str] = json.loads((FOLDER / "icons.json").read_text(encoding="utf-8"))
    return data


def _chapter(path: Path) -> tuple[Category, list[Achievement]]:
    stored = tomllib.loads(path.read_text(encoding="utf-8"))
    category = Category(**stored["category"])
    return category, [
        achievement_from({**item, "category": category.id}, OWN) for item in stored["achievement"]
    ]
