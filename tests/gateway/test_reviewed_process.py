"""What a second pair of eyes found in the gateway as a process: each was broken once."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from gateway import status
from gateway.platforms.local import socket_path
from gateway.process import main
from gateway.run import GatewayRunner
from support.chat import Chat
from support.gateway_process import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_state import SessionDB

RISKY = "{name: terminal, arguments: {command: rm -rf build}}"


@pytest.fixture
def gateway(hermes_home: Path) -> Iterator[Gateway]:
    found = Gateway()
    yield found
    found.end()


def start(gateway: Gateway) -> None:
    gateway.start()
    wait_until(gateway.is_up, "the gateway")


async def test_what_waits_for_an_approval_does_not_keep_it_from_ending_or_beginning_anew(
    gateway: Gateway, answering: Callable[[str], Any]
) -> None:
    answering(f"[{{calls: [{RISKY}]}}, {{say: Fine.}}, {{say: Fine.}}]")
    start(gateway)
    before = (status.read_runtime_status() or {})["start_time"]
    async with Chat(socket_path()) as chat:
        await chat.say("clean up", "m1")
        assert "Allow this command?" in (await chat.until(1))[0]
        os.kill(gateway.pid, signal.SIGUSR1)
        wait_until(
            lambda: (status.read_runtime_status() or {})["start_time"] > before and gateway.is_up(),
            "the new one",
        )
    async with Chat(socket_path()) as chat:
        await chat.say("clean up", "m1")  # the platform brings it again
        assert "Fine." in await chat.until(1)  # the turn goes on
        assert gateway.stop() == 0


def test_what_this_process_was_before_it_began_anew_is_dead(db: SessionDB) -> None:
    db.receive(platform="a", account="a", chat_id="c", message_id="1", session_key="k", payload={})
    now = db.identity
    db.identity = now._replace(process_id="before")
    assert db.claim_incoming() is not None
    db.identity = now
    db.sweep()
    assert db.waiting_places() == 1


def test_the_last_order_counts() -> None:
    runner = object.__new__(GatewayRunner)
    runner.request_restart()
    runner.request_stop()
    assert not runner._restart_requested


def test_signals_to_begin_anew_that_come_too_often_do_not_kill_it(gateway: Gateway) -> None:
    start(gateway)
    before = (status.read_runtime_status() or {})["start_time"]
    for _ in range(3):
        os.kill(gateway.pid, signal.SIGUSR1)
    wait_until(
        lambda: (status.read_runtime_status() or {})["start_time"] > before and gateway.is_up(),
        "the new one",
    )
    assert gateway.stop() == 0


@pytest.mark.parametrize("text", ["platforms: [telegram]\n", "gateway: {attempts: three}\n"])
def test_a_configuration_that_cannot_be_used_is_named_and_not_tried_again(
    gateway: Gateway, hermes_home: Path, text: str
) -> None:
    (hermes_home / "config.yaml").write_text(text)
    gateway.start()
    assert gateway.wait() == main.CONFIG_EXIT_CODE
    found = status.read_runtime_status() or {}
    assert found["gateway_state"] == "startup_failed"
    assert "config.yaml" in found["exit_reason"]
