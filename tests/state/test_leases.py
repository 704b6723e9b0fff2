"""Turn leases: one turn at a time per conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import LeaseLostError, LeaseTakenError
from hermes_state.engine.process_identity import ProcessIdentity, join
from hermes_state.upkeep.crash_recovery import release_process
from support.identities import act_as

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB


def pretend_to_be(store: SessionDB, **changes: object) -> None:
    act_as(store, store.identity._replace(process_id="another", **changes))


def test_a_second_turn_is_refused(db: SessionDB, session: str) -> None:
    lease = db.leases.acquire(session, "terminal")
    with pytest.raises(LeaseTakenError, match="terminal"):
        db.leases.acquire(session)
    db.leases.release(lease)
    assert db.leases.acquire(session).token == lease.token + 1


def test_conversations_do_not_wait_for_each_other(db: SessionDB, session: str) -> None:
    db.create_session("other", "cli")
    db.leases.acquire(session)
    db.leases.acquire("other")


@pytest.mark.engines
def test_an_expired_turn_is_taken_over_and_cannot_write(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    old = db.leases.acquire(session, seconds=60)
    clock.advance(61)
    new = db.leases.acquire(session)
    with pytest.raises(LeaseLostError):
        db.append_message(session, "assistant", "too late", lease=old)
    with pytest.raises(LeaseLostError):
        db.leases.renew(old)
    db.append_message(session, "assistant", "in time", lease=new)
    db.leases.release(old)
    db.leases.renew(new)
    assert [m["content"] for m in db.get_messages(session)] == ["in time"]


@pytest.mark.engines
@pytest.mark.parametrize("how", ["expired", "released"])
def test_the_draft_of_a_turn_that_was_taken_over_never_follows_the_next_answer(
    db: SessionDB, open_store, session: str, clock: ManualClock, how: str
) -> None:
    frozen = open_store()
    pretend_to_be(frozen)
    draft = frozen.messages.draft(session, lease=frozen.leases.acquire(session, seconds=60))
    draft.write("shown before the freeze")
    draft.flush()
    clock.advance(61)
    if how == "released":  # by a machine that presumed it dead
        db.engine.write(lambda tx: release_process(tx, "another", db.ids))
        draft.write(", late")
        draft.flush()
    new = db.leases.acquire(session)
    db.append_message(session, "assistant", "answer", lease=new)
    db.leases.release(new)
    draft.write(" and later")
    draft.flush()
    with pytest.raises(LeaseLostError):
        draft.finish()
    db.engine.write(lambda tx: release_process(tx, "another", db.ids))
    contents = [message["content"] for message in db.get_messages(session)]
    assert contents == ["shown before the freeze", "answer"]
    assert db.get_session(session)["ended_at"] is None
    assert db.engine.read(lambda r: r.rows("SELECT * FROM hermes_draft")) == []


@pytest.mark.engines
def test_a_dead_process_does_not_end_a_conversation_that_another_has_taken_over(
    db: SessionDB, open_store, session: str, clock: ManualClock
) -> None:
    frozen = open_store()
    pretend_to_be(frozen)
    frozen.leases.acquire(session, seconds=60)
    db.engine.write(lambda tx: join(tx, session, "another"))
    clock.advance(61)
    new = db.leases.acquire(session)
    db.engine.write(lambda tx: release_process(tx, "another", db.ids))
    assert db.get_session(session)["ended_at"] is None
    db.append_message(session, "assistant", "answer", lease=new)


def test_a_heartbeat_renews_the_lease(db: SessionDB, session: str, clock: ManualClock) -> None:
    lease = db.leases.acquire(session, seconds=60)
    for _ in range(5):
        clock.advance(50)
        db.leases.renew(lease, seconds=60)
    with pytest.raises(LeaseTakenError):
        db.leases.acquire(session)


@pytest.mark.parametrize("jump", [-86_400, 86_400])
def test_setting_the_clock_neither_ends_nor_extends_a_lease(
    db: SessionDB, session: str, clock: ManualClock, jump: int
) -> None:
    db.leases.acquire(session, seconds=60)
    clock.jump(jump)
    with pytest.raises(LeaseTakenError):
        db.leases.acquire(session)
    clock.advance(61)
    db.leases.acquire(session)


def test_the_lease_of_a_dead_process_is_free(open_store, session: str) -> None:
    store = open_store()
    pretend_to_be(store, pid=2**22 + 1, birth="1")
    old = store.leases.acquire(session)
    assert open_store().leases.acquire(session).token > old.token


def test_a_process_of_an_earlier_boot_is_dead(open_store, session: str) -> None:
    store = open_store()
    pretend_to_be(store, boot_id="earlier")
    store.leases.acquire(session)
    open_store().leases.acquire(session)


def test_a_process_on_another_machine_is_alive_while_it_sends_heartbeats(
    open_store, session: str, clock: ManualClock
) -> None:
    store = open_store()
    pretend_to_be(store, host="elsewhere", boot_id="its own")
    lease = store.leases.acquire(session, seconds=1000)
    store.leases.renew(lease, seconds=1000)
    with pytest.raises(LeaseTakenError):
        open_store().leases.acquire(session)
    clock.advance(500)
    open_store().leases.acquire(session)


def test_only_a_turn_of_another_running_process_is_elsewhere(
    open_store, session: str, clock: ManualClock
) -> None:
    ours, other = open_store(), open_store()
    pretend_to_be(other, host="elsewhere", boot_id="its own")
    assert not ours.leases.is_held_elsewhere(session)
    ours.leases.release(ours.leases.acquire(session))
    lease = other.leases.acquire(session, seconds=60)
    assert ours.leases.is_held_elsewhere(session)
    assert not other.leases.is_held_elsewhere(session), "it is its own"
    other.leases.release(lease)
    assert not ours.leases.is_held_elsewhere(session)
    other.leases.acquire(session, seconds=60)
    clock.advance(61)
    assert not ours.leases.is_held_elsewhere(session), "it has run out"


def test_the_identity_of_the_current_process_is_stable() -> None:
    item, two = ProcessIdentity.of_this_process(), ProcessIdentity.of_this_process()
    assert item.shares_pid_namespace(two)
    assert (item.pid, item.birth) == (two.pid, two.birth)
    assert item.process_id != two.process_id
