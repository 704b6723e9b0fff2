"""What a second pair of eyes found: each was broken once."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from gateway.config import GatewayConfig, Platform, PlatformConfig, SessionResetPolicy
from gateway.inbound import inbox_codec, transcription
from gateway.inbound.turn_runner import TurnPrompt
from gateway.outbound import direct_send
from gateway.platforms.base import Abilities, MessageEvent, SendResult
from gateway.platforms.local import LocalAdapter
from gateway.process.service import GatewayService
from gateway.routing.handoff_worker import HandoffWorker
from gateway.routing.sources import SessionSource
from gateway.run import GatewayRunner
from gateway.session import SessionStore, local_now
from hermes_agent.memory.files import MemoryFiles
from hermes_core.errors import StoreError
from hermes_state import SessionDB
from support.gateways import answers, said, started
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gateway.platforms.base import OutgoingMessage

SLOW = "one two three four five six seven eight"
RISKY = "{name: terminal, arguments: {command: rm -rf build}}"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - a condition on the disk
            await asyncio.sleep(0.01)


def event(text: str, number: str, user: str = "u1", **facts: Any) -> MessageEvent:
    source = SessionSource(facts.pop("platform", Platform.LOCAL), "c1", user_id=user)
    return MessageEvent(text, source=source, message_id=number, **facts)


def place(db: SessionDB, folder: Path, **config: Any) -> SessionStore:
    found = SessionStore(folder, GatewayConfig(**config))
    found._db = db
    return found


# Sending


class Odd:
    """A platform whose adapter fails in ways nobody foresaw."""

    abilities: ClassVar = Abilities()
    account = "odd"

    def __init__(self) -> None:
        self.tries = 0

    async def connect(self, _receive: Any) -> None: ...

    async def disconnect(self) -> None: ...

    async def send(self, _outgoing: OutgoingMessage) -> SendResult:
        self.tries += 1
        raise ZeroDivisionError("a mistake in an adapter")


async def test_an_adapter_that_breaks_does_not_silence_its_platform(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    odd = Odd()
    for number in range(6):
        target = {"chat_id": str(number)}
        db.owe_reply(f"k{number}", platform="telegram", target=target, payload={"text": "hi"})
    async with started(db, tmp_path, adapters={"telegram": odd}):
        await until(lambda: odd.tries >= 6)
    states = {(db.reply(number) or {})["state"] for number in range(1, 7)}
    assert "sending" not in states


class OddAtTyping(Odd):
    abilities: ClassVar = Abilities(typing=True)

    async def typing(self, _chat_id: str, _thread_id: str | None = None) -> None:
        self.tries += 1
        raise ZeroDivisionError("a mistake in an adapter")

    async def send(self, _outgoing: OutgoingMessage) -> SendResult:
        return SendResult(True, message_id="1")


async def test_what_goes_wrong_while_an_answer_is_shown_harms_no_answer(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.02}}]")
    odd = OddAtTyping()
    async with started(db, tmp_path, guests(), {"telegram": odd}) as service:
        message = event("hi", "m1", "guest", platform=Platform.TELEGRAM)
        await service.receiver.receive("odd", message)
        await until(lambda: answers(db))
    assert answers(db) == [SLOW]
    assert odd.tries == 1
    assert db.find_incoming("m1")[0]["attempts"] == 1


def test_what_is_too_old_is_not_sent(db: SessionDB) -> None:
    number = db.owe_reply("k", platform="local", target={}, payload={"text": "x"})
    sql = "UPDATE hermes_outbox SET created_at = 1"
    db.engine.write(lambda tx: tx.run(sql))
    assert db.claim_reply() is None
    assert (db.reply(number) or {})["state"] == "failed"


def test_mail_is_forgotten_past_what_never_settles(db: SessionDB) -> None:
    db.owe_reply("never", platform="gone", target={}, payload={})
    for number in range(1500):
        db.owe_reply(f"k{number}", platform="a", target={}, payload={})
    sql = "UPDATE hermes_outbox SET state = 'sent', settled_at = 1 WHERE platform = 'a'"
    db.engine.write(lambda tx: tx.run(sql))
    assert [db.forget_mail(30) for _ in range(3)] == [1000, 500, 0]


# Messages


@pytest.mark.parametrize("text", ["/ ", "/", "/\n", "/ x"])
def test_a_slash_alone_is_no_command(text: str) -> None:
    assert MessageEvent(text).get_command() in {None, "x"}


def test_the_words_of_a_command_may_stand_on_the_next_line() -> None:
    assert MessageEvent("/queue\nDo this").get_command_args() == "Do this"


async def test_a_message_nobody_can_read_is_settled_and_not_tried_for_ever(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    row = {"platform": "local", "account": "local", "chat_id": "c1", "session_key": "k"}
    db.receive(**row, message_id="m0", payload={"text": "x", "source": {"platform": "gone"}})
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("hi", "m1"))
        await until(lambda: answers(db) == ["Hello."])
    (found,) = db.find_incoming("m0")
    assert (found["state"], found["attempts"]) == ("failed", 1)


async def test_a_message_nobody_can_read_takes_no_other_along(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with started(db, tmp_path) as service:
        message = event("hi", "m1", group_id="album")  # more may be on its way
        await service.receiver.receive("local", message)
        key = "agent:main:local:dm:c1"
        row = {"platform": "local", "account": "local", "chat_id": "c1", "session_key": key}
        db.receive(**row, message_id="m2", payload={"source": {"platform": "gone"}})
        await until(lambda: answers(db) and db.waiting_places() == 0)
        await until(lambda: db.find_incoming("m2")[0]["state"] == "failed")
    assert answers(db) == ["Hello."]


async def test_a_store_that_refuses_in_mid_turn_is_no_answer(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    times: list[int] = []
    real = SessionDB.append_message

    def refusing(self: SessionDB, *values: Any, **names: Any) -> Any:
        times.append(1)
        if len(times) == 1:
            raise StoreError("the disk is full")
        return real(self, *values, **names)

    monkeypatch.setattr(SessionDB, "append_message", refusing)
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("hi", "m1"))
        await until(lambda: answers(db))
    assert answers(db) == ["Hello."]


async def test_what_is_steered_and_not_read_is_answered_after_the_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.1}}, {{say: Second.}}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", event("/steer and quickly", "m2"))
        await until(lambda: len(answers(db)) == 2)
    assert said(db).count("and quickly") == 1
    assert answers(db)[1] == "Second."


async def test_an_edit_of_what_the_turn_may_have_read_is_said_again(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    call = "{name: terminal, arguments: {command: sleep 1}}"
    answering(f"[{{calls: [{call}]}}, {{say: One.}}, {{say: Two.}}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", event("at four", "m2"))
        await service.receiver.receive("local", event("at five", "m2", is_edit=True))
        await until(lambda: db.waiting_places() == 0 and answers(db))
    assert any("at five" in one for one in said(db))


async def test_a_clock_that_is_set_back_keeps_nobody_waiting(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with started(db, tmp_path) as service:
        message = event("look", "m1", group_id="g")
        await asyncio.to_thread(service.receiver._store, "local", message)
        sql = "UPDATE hermes_inbox SET received_at = received_at + 3600"
        db.engine.write(lambda tx: tx.run(sql))
        service.inbox_workers.wake()
        await until(lambda: answers(db) == ["Hello."])


async def test_a_new_conversation_does_not_wait_for_the_old_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.5}}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("first", "m1"))
        await until(service.conversations.all_running)
        await service.receiver.receive("local", event("/new", "m2"))
        await until(lambda: len(answers(db)) == 2)
    assert "(Stopped.)" in answers(db)[0]
    assert answers(db)[1].startswith("New session started")


async def test_a_stop_that_comes_before_the_turn_begins_is_heard(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Never.}]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event("look", "m1", group_id="album"))
        await service.receiver.receive("local", event("/stop", "m2"))  # more may be on its way
        await until(lambda: answers(db) and db.waiting_places() == 0)
    assert answers(db) == ["(Stopped before the turn started.)"]


@pytest.mark.parametrize("line", ["/stop", "/approve", "/deny"])
async def test_a_command_for_a_turn_that_does_not_run_is_answered(
    db: SessionDB, tmp_path: Path, answering: Any, line: str
) -> None:
    answering("[]")
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", event(line, "m1"))
        await until(lambda: answers(db))
    assert answers(db)[0].startswith("No ")


# Commands are carried out once


def handled(db: SessionDB, service: Any, line: str, number: str) -> None:
    """Carry out a command as far as its answer, and be killed before that is noted."""
    asyncio.run(service.receiver.receive("local", event(line, number)))
    row = db.claim_incoming()
    assert row is not None
    service.message_handler._answer(_prompt(row))
    db.give_back_incoming(row, is_attempt=False)  # whatever counted it


def _prompt(row: dict[str, Any]) -> Any:
    return TurnPrompt([row], [inbox_codec.decode(row["payload"])])


@pytest.mark.parametrize("line", ["/new", "/resume older", "/undo"])
def test_a_command_is_carried_out_once_whoever_counted(
    db: SessionDB, tmp_path: Path, answering: Any, line: str
) -> None:
    answering("[]")
    routes = place(db, tmp_path)
    entry = routes.get_or_create_session(event("x", "0").source or pytest.fail("no source"))
    key = entry.session_key
    db.create_session("older", "local", is_owned=False, session_key=key)
    for number in range(3):
        db.append_message(entry.session_id, "user", f"q{number}")
        db.append_message(entry.session_id, "assistant", f"a{number}")
    service = GatewayService(db, routes, GatewayConfig(), tmp_path)
    handled(db, service, line, "m1")
    after = routes.get(key)
    assert after is not None
    left = len(db.get_messages(entry.session_id))
    row = db.claim_incoming()
    assert row is not None
    service.message_handler.handle(row)
    assert routes.get(key) == after
    assert len(db.get_messages(entry.session_id)) == left
    finals = [one for one in db.list_boundaries() if one["is_final"]]
    assert len(finals) <= 1
    service.inbox_workers.close()


async def test_after_a_branch_both_conversations_have_desks_of_their_own(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}, {say: A3}]")
    async with started(db, tmp_path) as service:
        for number, line in enumerate(("one", "/branch", "two", "/resume", "three")):
            await service.receiver.receive("local", event(line, f"m{number}"))
            await until(lambda number=number: len(answers(db)) == number + 1)
    talks = {tuple(map(str, _said(db, row["id"]))) for row in db.list_sessions_rich(limit=-1)}
    assert talks == {("one", "A1", "two", "A2"), ("one", "A1", "three", "A3")}


def _said(db: SessionDB, session_id: str) -> list[Any]:
    return [one["content"] for one in db.get_messages(session_id)]


# Routes


def test_routes_that_could_not_be_read_are_read_again(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = event("x", "0").source
    assert source is not None
    first = place(db, tmp_path).get_or_create_session(source)
    with monkeypatch.context() as broken:
        broken.setattr(db, "routes", lambda: (_ for _ in ()).throw(StoreError("locked")))
        again = place(db, tmp_path)
        with pytest.raises(StoreError):
            again.get_or_create_session(source)
    assert again.get_or_create_session(source).session_id == first.session_id


def test_one_route_that_cannot_be_read_harms_no_other(db: SessionDB, tmp_path: Path) -> None:
    source = event("x", "0").source
    assert source is not None
    first = place(db, tmp_path).get_or_create_session(source)
    row = ("p", "k", "s", 1.0, '{"nonsense": 1}')
    db.engine.write(lambda tx: tx.run("INSERT INTO hermes_route VALUES (?, ?, ?, ?, ?)", row))
    assert place(db, tmp_path).get_or_create_session(source).session_id == first.session_id
    assert len(direct_send.list_channels(db, GatewayConfig())) == 1


@pytest.mark.clock
def test_the_watcher_does_not_undo_what_a_message_did(db: SessionDB, tmp_path: Path) -> None:
    policy = SessionResetPolicy("idle", idle_minutes=60)
    routes = place(db, tmp_path, default_reset_policy=policy)
    source = event("x", "0").source
    assert source is not None
    old = routes.get_or_create_session(source)
    routes.update_session(old.session_key, updated_at=local_now() - timedelta(hours=3))
    new = routes.get_or_create_session(source)
    routes.finalize_expired(old)
    (route,) = db.routes()
    assert route.session_id == new.session_id


async def test_the_watcher_survives_a_store_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = object.__new__(GatewayRunner)
    runner._running, looked = True, []

    def refusing() -> None:
        looked.append(1)
        runner._running = len(looked) < 3
        raise StoreError("locked")

    monkeypatch.setattr(runner, "_end_expired", refusing)
    monkeypatch.setattr(runner, "_prune", lambda: None)
    monkeypatch.setattr("gateway.run.FIRST_SWEEP_SECONDS", 0)
    await runner._session_expiry_watcher(0)
    assert len(looked) == 3


@pytest.mark.clock
async def test_a_conversation_whose_turn_runs_is_not_over(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.1}}]")
    policy = SessionResetPolicy("idle", idle_minutes=60)
    async with started(db, tmp_path, GatewayConfig(default_reset_policy=policy)) as service:
        await service.receiver.receive("local", event("hi", "m1"))
        await until(service.conversations.all_running)
        (entry,) = service._routes.list_sessions()
        entry.updated_at = local_now() - timedelta(hours=3)
        assert not service._routes._is_session_expired(entry)
        await until(lambda: answers(db))


# People


def guests(**more: Any) -> GatewayConfig:
    extra = {"allowed_users": ["guest", "owner"], **more}
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=extra)})


async def asked(db: SessionDB, folder: Path, config: GatewayConfig, *lines: str) -> None:
    async with started(db, folder, config) as service:
        for number, line in enumerate(lines):
            message = event(line, f"g{number}", "guest", platform=Platform.TELEGRAM)
            await service.receiver.receive("bot", message)
            await until(lambda number=number: len(answers(db)) == number + 1)


async def test_a_guest_is_told_of_no_other_conversation(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    for number in range(3):
        db.create_session(f"secret{number}", "telegram", is_owned=False)
        db.set_session_title(f"secret{number}", f"Divorce lawyer {number}")
        db.append_message(f"secret{number}", "user", "kumquat")
    await asked(
        db, tmp_path, guests(), "hi", "/resume Divorce", "/resume secret", "/search kumquat"
    )
    assert not any("lawyer" in one or "secret0" in one or "kumquat" in one for one in answers(db))


async def test_what_is_remembered_of_the_owner_is_not_in_the_prompt_of_a_guest(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering("[{say: Hello.}]")
    path = MemoryFiles().path("user")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("- The owner's PIN is 4711\n")
    await asked(db, tmp_path, guests(allow_admin_from=["owner"]), "hi")
    assert "4711" not in json.dumps(server.requests)
    names = [one["function"]["name"] for one in server.requests[0]["tools"]]
    assert "memory" not in names


async def test_a_chat_that_takes_a_conversation_over_gets_a_desk_of_its_own(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    config = guests(allow_admin_from=["owner"])
    async with started(db, tmp_path, config) as service:
        await service.receiver.receive("local", event("mine", "m1"))
        await until(lambda: len(answers(db)) == 1)
        (owners,) = service._routes.list_sessions()
        message = event(f"/resume {owners.session_id}", "h1", "guest", platform=Platform.TELEGRAM)
        message.internal = True
        await service.receiver.receive("bot", message)
        await until(lambda: len(answers(db)) == 2)
        entry = service._routes.get("agent:main:telegram:dm:c1")
        assert entry is not None
        conversation = await asyncio.to_thread(service.conversations.acquire, entry)
        assert conversation.wish.only_of == entry.session_key


def test_a_command_that_writes_down_speech_sees_no_tokens(
    hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    assert "secret" not in transcription.CommandTranscriber("sh -c env")(tmp_path)


# Home channels and hand-offs


@pytest.mark.parametrize("home", [{"chat_id": "7", "name": "Home"}, "7", 7])
def test_a_home_channel_is_read_as_people_write_it(home: Any) -> None:
    config = GatewayConfig.from_dict({"platforms": {"telegram": {"home_channel": home}}})
    found = config.get_home_channel(Platform.TELEGRAM)
    assert found is not None
    assert (found.platform, found.chat_id) == (Platform.TELEGRAM, "7")


def test_what_is_sent_home_is_noted_in_its_conversation(db: SessionDB, tmp_path: Path) -> None:
    config = GatewayConfig.from_dict({"platforms": {"local": {"home_channel": "c1"}}})
    source = event("x", "0").source
    assert source is not None
    entry = place(db, tmp_path).get_or_create_session(source)
    channel = direct_send.find_channel(db, config, "local")
    assert channel.session_id == entry.session_id
    direct_send.send(db, channel, "Tea — now", "k")
    (row,) = db.find_incoming("sent:k")
    assert row["payload"]["text"] == "/sent Tea — now"


def test_a_hand_off_that_broke_off_is_carried_out_at_the_next_start(
    db: SessionDB, tmp_path: Path
) -> None:
    source = event("x", "0").source
    assert source is not None
    routes = place(db, tmp_path)
    routes.get_or_create_session(source)
    db.create_session("cli1", "cli", is_owned=False)
    db.request_handoff("cli1", "local")
    db.claim_handoff("cli1")  # and killed
    HandoffWorker(db, routes, {"local": LocalAdapter(tmp_path / "s")}).run_pending()
    assert (db.get_handoff_state("cli1") or {})["state"] == "completed"
    assert db.waiting_places() == 1
