"""Stores that act as another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state import SessionDB
    from hermes_state.engine.process_identity import ProcessIdentity

NO_PROCESS = 2**22 + 1  # above the largest process ID of Linux


def act_as(store: SessionDB, identity: ProcessIdentity) -> None:
    """Let a store claim and own rows as the process *identity*."""
    store.identity = identity
    store.context = store.context._replace(identity=identity)
    for repository in vars(store).values():
        if isinstance(repository, Repository):
            repository.identity = identity


def act_as_dead_process(store: SessionDB, process_id: str) -> None:
    """Let a store claim and own rows as a process that has ended."""
    act_as(store, store.identity._replace(process_id=process_id, pid=NO_PROCESS, birth="1"))
