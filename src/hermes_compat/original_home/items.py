"""The plan of a move: one item for each thing that was found in the home of hermes-agent."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hermes_core.isolate import Failure, attempt
from hermes_state.imports.rows import StoredUnit, UnitState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_compat.original_home.home import OriginalHome
    from hermes_core.config.file import ConfigFile
    from hermes_state.store import SessionDB

MARKS_NAME: Final = "hermes-agent home"
TAKEN_BEFORE: Final = "already imported"


class ItemState(StrEnum):
    """What happens to an item."""

    TAKE = "take"
    HERE = "here"  # taken before, or used where it is
    SKIP = "not taken"
    TAKEN = "taken"
    FAILED = "failed"


class MoveItem(NamedTuple):
    """A thing in the home of hermes-agent, and what happens to it.

    `apply` takes it over and may be repeated; it may return what was done in words. An item with
    a *mark* is taken once, also if it is deleted here afterwards.
    """

    kind: str
    name: str
    state: ItemState
    detail: str = ""
    apply: Callable[[], str | None] | None = None
    mark: str = ""


class TakenMarks:
    """What earlier runs have taken over."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._known = set(db.imports.units(MARKS_NAME))

    def __contains__(self, mark: object) -> bool:
        return mark in self._known

    def add(self, mark: str) -> None:
        """Remember that something was taken over."""
        self._db.imports.store(MARKS_NAME, [], [StoredUnit(mark, UnitState("taken"))])
        self._known.add(mark)


class MoveContext(NamedTuple):
    """The home of hermes-agent, and where things are taken to."""

    home: OriginalHome
    db: SessionDB
    config: ConfigFile
    marks: TakenMarks
    is_plan: bool = False  # nothing is taken over

    def once(self, item: MoveItem) -> MoveItem:
        """*item*, unless it was taken over before."""
        if item.mark in self.marks:
            return item._replace(state=ItemState.HERE, detail=TAKEN_BEFORE)
        return item


class Mover(Protocol):
    """Plans one kind of thing."""

    def __call__(self, context: MoveContext) -> Iterable[MoveItem]:
        """The items of this kind."""
        ...


def plan(context: MoveContext, movers: Iterable[Mover]) -> list[MoveItem]:
    """Everything that was found, in the order in which it is taken over."""
    return [item for mover in movers for item in mover(context)]


def carry_out(
    context: MoveContext,
    movers: Iterable[Mover],
    on_item: Callable[[MoveItem], object] = lambda _item: None,
) -> Iterator[MoveItem]:
    """Take everything over, one mover after the other; what fails is reported."""
    for mover in movers:
        for item in mover(context):
            if item.state is ItemState.TAKE and item.apply is not None:
                on_item(item)
                yield _apply(context, item)
            else:
                yield item


def _apply(context: MoveContext, item: MoveItem) -> MoveItem:
    def run() -> str:
        detail = (item.apply() if item.apply is not None else "") or item.detail
        if item.mark:
            context.marks.add(item.mark)
        return detail

    result = attempt(f"take {item.kind} {item.name}", run)
    if isinstance(result, Failure):
        return item._replace(state=ItemState.FAILED, detail=str(result.error))
    return item._replace(state=ItemState.TAKEN, detail=result)
