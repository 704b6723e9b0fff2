"""A captured webhook delivery: it cannot be replayed, changed or sent to another route."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gateway.platforms.webhook import routes
from hermes_state import SessionDB
from support.webhook_setup import NOW, OTHER_SECRET, SECRET, WebhookSetup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = json.dumps({"title": "A fix"}).encode()
GITHUB = {"X_Hub_Signature_256": routes.github_signature(SECRET, BODY)}
STAMPED = {"X_Hermes_Signature": routes.hermes_signature(SECRET, BODY, int(NOW))}


@pytest.fixture
def setup(hermes_home: Path, tmp_path: Path) -> Iterator[WebhookSetup]:
    with SessionDB() as db:
        yield WebhookSetup(db, tmp_path)


def signed(route: str, delivery_id: str, at: float = NOW) -> dict[str, str]:
    """The headers of a delivery in the current form."""
    signature = routes.delivery_signature(SECRET, route, delivery_id, BODY, int(at))
    return {"X_Hermes_Signature": signature, "X_Hermes_Delivery": delivery_id}


@pytest.mark.parametrize("signature", [GITHUB, STAMPED], ids=["github", "timestamp"])
@pytest.mark.parametrize("header", ["Idempotency_Key", "X_Request_Id", "X_GitHub_Delivery"])
async def test_a_captured_delivery_cannot_be_sent_again_under_another_id(
    setup: WebhookSetup, signature: dict[str, str], header: str
) -> None:
    async with setup.connected():
        first = await setup.call(BODY, **signature, **{header: "one"})
        again = await setup.call(BODY, **signature, **{header: "two"})
        without = await setup.call(BODY, **signature)
    assert (first.status_code, again.status_code, without.status_code) == (202, 409, 409)
    assert "already received" in again.json()["error"]
    assert len(setup.inbox.events) == 1


async def test_a_replay_is_refused_after_a_restart(setup: WebhookSetup) -> None:
    async with setup.connected():
        await setup.call(BODY, **STAMPED, X_Request_Id="one")
    setup.now += 200
    async with setup.connected():
        assert (await setup.call(BODY, **STAMPED, X_Request_Id="two")).status_code == 409
        assert (await setup.call(BODY, **STAMPED, X_Request_Id="one")).status_code == 202
    setup.now += 200
    async with setup.connected():
        assert (await setup.call(BODY, **STAMPED, X_Request_Id="one")).status_code == 401


async def test_a_delivery_that_was_not_stored_can_be_sent_again(setup: WebhookSetup) -> None:
    setup.inbox.fail(1, OSError("disk full"))
    async with setup.connected():
        assert (await setup.call(BODY, **GITHUB, X_Request_Id="one")).status_code == 503
        assert (await setup.call(BODY, **GITHUB, X_Request_Id="two")).status_code == 202


async def test_a_shared_secret_needs_a_signature_that_names_the_route(setup: WebhookSetup) -> None:
    setup.routes["deploy"] = {"prompt": "Deploy {title}."}
    async with setup.connected():
        for signature in (GITHUB, STAMPED):
            answer = await setup.call(BODY, "deploy", **signature)
            assert answer.status_code == 401
            assert "Several routes" in answer.json()["error"]
        assert (await setup.call(BODY, "deploy", **signed("deploy", "d1"))).status_code == 202
        assert (await setup.call(BODY, "deploy", **signed("reviews", "d2"))).status_code == 401
    assert len(setup.inbox.events) == 1


async def test_a_route_with_its_own_secret_accepts_the_forms_of_older_senders(
    setup: WebhookSetup,
) -> None:
    setup.routes["deploy"] = {"prompt": "Deploy {title}.", "secret_env": "CI_SECRET"}
    other = {"X_Hub_Signature_256": routes.github_signature(OTHER_SECRET, BODY)}
    async with setup.connected():
        assert (await setup.call(BODY, **GITHUB)).status_code == 202
        assert (await setup.call(BODY, "deploy", **other)).status_code == 202
        assert (await setup.call(BODY, "deploy", **GITHUB)).status_code == 401


async def test_the_id_of_a_delivery_is_signed(setup: WebhookSetup) -> None:
    headers = signed("reviews", "d1")
    async with setup.connected():
        assert (await setup.call(BODY, **headers)).json() == {"received": "d1"}
        changed = {**headers, "X_Hermes_Delivery": "d2"}
        assert (await setup.call(BODY, **changed)).status_code == 401
        extra = await setup.call(BODY, **headers, X_GitHub_Delivery="d3", Idempotency_Key="d4")
        assert extra.json() == {"received": "d1"}
        missing = {"X_Hermes_Signature": headers["X_Hermes_Signature"]}
        assert (await setup.call(BODY, **missing)).status_code == 401
        setup.now += 301
        assert (await setup.call(BODY, **headers)).status_code == 401
    assert {event.message_id for event in setup.inbox.events} == {"d1"}


async def test_a_captured_delivery_cannot_be_sent_again_with_its_weaker_signatures(
    setup: WebhookSetup,
) -> None:
    """A sender may sign in several forms, as Hermes does itself."""
    named = signed("reviews", "d1")
    both = f"{STAMPED['X_Hermes_Signature']},{named['X_Hermes_Signature'].partition(',')[2]}"
    async with setup.connected():
        first = await setup.call(BODY, **{**named, **GITHUB, "X_Hermes_Signature": both})
        stamped = await setup.call(BODY, **STAMPED, X_Request_Id="two")
        github = await setup.call(BODY, **GITHUB, X_Request_Id="three")
    assert (first.status_code, stamped.status_code, github.status_code) == (202, 409, 409)
    assert len(setup.inbox.events) == 1


async def test_an_id_cannot_be_confused_with_the_body(setup: WebhookSetup) -> None:
    body = b"1.5"
    signature = routes.delivery_signature(SECRET, "reviews", "d1", body, int(NOW))
    async with setup.connected():
        shifted = {"X_Hermes_Signature": signature, "X_Hermes_Delivery": "d1.1"}
        assert (await setup.call(b"5", **shifted)).status_code == 401
