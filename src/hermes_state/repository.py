"""What the repositories of a store have in common."""

from __future__ import annotations

import importlib
from abc import ABCMeta
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast

from hermes_state.engine import process_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_core.clock import Clock
    from hermes_core.ids import MessageIds
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Tx
    from hermes_state.ledger.history import StoreHistory

    # Returns what a session adds to lifetime statistics, before its rows are deleted.
    PurgeHook = Callable[[StoreHistory, str], bytes | None]


class StoreContext(NamedTuple):
    """An open file, and what its repositories need to write to it."""

    engine: Engine
    clock: Clock
    ids: MessageIds
    identity: ProcessIdentity
    purge_hook: PurgeHook | None = None


class Repository:
    """The operations on one kind of row.

    Methods are thin: each passes a function named for the change to the engine. These
    functions receive an open transaction, so that several changes can share one.
    """

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        self.engine, self.clock, self.ids, self.identity, _ = context

    def _register_process(self, tx: Tx) -> None:
        """Register this process before it claims or owns a row, and start its heartbeat."""
        process_identity.register(tx, self.identity)
        self.engine.start_heartbeat(self.identity)


AnyRepository = TypeVar("AnyRepository", bound=Repository)


class HasContext(Protocol):
    """A store."""

    context: StoreContext


class Lazy(Generic[AnyRepository]):
    """An attribute of a store whose repository is loaded and created at first use."""

    def __init__(self, module: str, name: str, *others: str) -> None:
        self._module = module
        self._class_name = name
        self._others = others  # repositories of the same store that it uses

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, store: HasContext, owner: type) -> AnyRepository:
        module = importlib.import_module(f"hermes_state.{self._module}")
        others = (getattr(store, name) for name in self._others)
        repository = getattr(module, self._class_name)(store.context, *others)
        # The attribute of the instance is found first from now on.
        return cast("AnyRepository", store.__dict__.setdefault(self._attribute, repository))


class _StoreClass(ABCMeta):  # so that a subclass may have an abstract base too
    """The class of a store, which gets the names of hermes-agent at the first use of one."""

    def __getattr__(cls, name: str) -> object:
        _add_original_names(cls)
        return type.__getattribute__(cls, name)

    def __dir__(cls) -> Iterable[str]:
        _add_original_names(cls)
        return super().__dir__()


class OriginalNamesOnUse(metaclass=_StoreClass):
    """Stands for `facade.OriginalNames`, which needs most modules of the store."""

    def __init_subclass__(cls, **options: object) -> None:
        """Load the names for a subclass of a store: `super()` asks no `__getattr__`."""
        super().__init_subclass__(**options)
        if OriginalNamesOnUse not in cls.__bases__:
            _add_original_names(cls)

    def __getattr__(self, name: str) -> object:
        _add_original_names(type(self))
        return getattr(self, name)

    def __dir__(self) -> Iterable[str]:
        _add_original_names(type(self))
        return object.__dir__(self)


def _add_original_names(store: type) -> None:
    from hermes_state.facade import OriginalNames  # noqa: PLC0415 - short commands do without

    for each in store.__mro__:
        if OriginalNamesOnUse in each.__bases__:
            each.__bases__ = (OriginalNames,)
