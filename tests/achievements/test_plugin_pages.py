"""The routes of the achievements page: catalogue and recaps."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from achievements.test_plugin_api import PREFIX, load_plugin, serving, wait_for_snapshot
from hermes_achievements.calendar import Calendar
from hermes_achievements.scan.ledger_entries import collect_facts, make_entry
from hermes_conversation import achievements
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2 as httpx

    from achievements.history_builder import HistoryBuilder
    from hermes_achievements.scan.history import LedgerEntry
    from hermes_achievements.service import HistorySource

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def client(builder: HistoryBuilder) -> Iterator[httpx.Client]:
    builder.send("hello")
    for _ in range(12):
        builder.run_shell("pytest && git commit -m x")
    with serving(load_plugin()) as client:
        yield client


def test_the_catalogue_has_shapes_for_every_icon_and_colours_for_every_tier(
    client: httpx.Client,
) -> None:
    catalogue = client.get(f"{PREFIX}/catalogue").json()
    shown = wait_for_snapshot(client)["achievements"]
    tiers = {tier["id"]: tier for tier in catalogue["tiers"]}
    categories = {category["id"] for category in catalogue["categories"]}
    assert {item["icon"] for item in shown} | {"lock", "award"} <= catalogue["icons"].keys()
    assert {item["tier"] for item in shown if item["tier"]} <= tiers.keys()
    assert {item["category"] for item in shown} == categories
    assert all(tier["colour"].startswith("#") and tier["glow"] for tier in tiers.values())


def test_the_catalogue_route_reveals_no_secret(client: httpx.Client) -> None:
    assert client.get(f"{PREFIX}/catalogue").json().keys() == {"tiers", "categories", "icons"}


def test_the_recap_of_a_month_has_totals_and_choices(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2026-01"}).json()
    assert body["period"]["name"] == "January 2026"
    assert body["totals"]["commits"] == 12
    assert len(body["days"]) == 31
    assert not body["is_empty"]
    assert body["years"] == [{"id": "2026", "name": "2026"}]
    assert body["months"] == [{"id": "2026-01", "name": "January 2026"}]
    assert body["weeks"] == [{"id": "2026-W02", "name": "Week 2 of 2026"}]
    assert {"name": "commits", "said": "12"} in body["figures"]
    assert body["best_day"]["day"] == "2026-01-05"


def test_tier_ups_of_a_recap_reference_their_messages(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2026"}).json()
    assert body["tier_ups"]
    for step in body["tier_ups"]:
        assert step["session_id"] == "s1"
        assert step["message_id"]
        assert step["is_gone"] is False


def test_the_default_period_is_the_latest_year(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    assert client.get(f"{PREFIX}/recap").json()["period"]["id"] == "2026"


def test_a_period_without_activity_is_empty(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2019"}).json()
    assert body["is_empty"]
    assert body["months"]
    answer = client.get(f"{PREFIX}/recap/picture", params={"period": "2019"})
    assert answer.status_code == 404
    assert "No activity" in answer.json()["detail"]


def test_a_recap_is_available_as_a_png(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    answer = client.get(f"{PREFIX}/recap/picture", params={"period": "2026-01"})
    assert answer.content.startswith(PNG)
    assert answer.headers["content-type"] == "image/png"
    assert "hermes-recap-2026-01.png" in answer.headers["content-disposition"]


def test_each_slide_of_a_story_is_a_picture_without_titles_and_cost(client: httpx.Client) -> None:
    wait_for_snapshot(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2026-W02"}).json()
    names = [slide["id"] for slide in body["slides"]]
    assert names[0] == "opening"
    assert names[-1] == "closing"
    assert {"conversations", "work", "best-day", "rhythm", "badges"} <= set(names)
    for slide in body["slides"]:
        assert "$" not in str(slide)
        query = {"period": "2026-W02", "slide": slide["id"]}
        answer = client.get(f"{PREFIX}/recap/picture", params=query)
        assert answer.content.startswith(PNG), slide["id"]
    query = {"period": "2026-W02", "slide": "nowhere"}
    assert client.get(f"{PREFIX}/recap/picture", params=query).status_code == 404


@pytest.mark.parametrize("path", ["recap", "recap/picture"])
@pytest.mark.parametrize("period", ["soon", "2026-13", '2026"; x=', "2026-W99"])
def test_an_invalid_period_is_rejected_with_the_accepted_formats(
    client: httpx.Client, path: str, period: str
) -> None:
    answer = client.get(f"{PREFIX}/{path}", params={"period": period})
    assert answer.status_code == 400
    assert "2026" in answer.json()["detail"]


def test_an_empty_home_has_no_recap(hermes_home: object) -> None:
    with serving(load_plugin()) as client:
        body = client.get(f"{PREFIX}/recap").json()
        assert body["period"] is None
        assert client.get(f"{PREFIX}/recap/picture").status_code == 404


def test_the_first_scan_of_another_process_is_shown_as_progress(builder: HistoryBuilder) -> None:
    for number in range(3):
        builder.start(f"other-{number}").send("hello")
    plugin = load_plugin()
    source = achievements.source()
    with serving(plugin) as client, contextlib.closing(source.open_ledger()) as ledger:
        with ledger.try_lock() as is_locked:
            assert is_locked
            ledger.save(_entries_of_other_scan(source), {"generation": b"1"}, 1)
            body = _wait_for_progress(client)
            assert body["scan_meta"]["mode"] == "in_progress"
            assert body["scan_meta"]["sessions_scanned_so_far"] == 2
            assert body["scan_meta"]["sessions_expected_total"] == 4
            assert body["scan_meta"]["status"]["waiting_for"]
            assert body["unlocked_count"] > 0
        assert wait_for_snapshot(client)["scan_meta"]["sessions_total"] == 4


def _entries_of_other_scan(source: HistorySource) -> list[LedgerEntry]:
    """Ledger entries of two of the sessions."""
    calendar = Calendar(find_zone(source.zone))
    with contextlib.closing(source.open_history()) as history:
        recorded = [collect_facts(history, name) for name in ("other-0", "other-1")]
    return [make_entry(facts, calendar)[0] for facts in recorded if facts is not None]


def _wait_for_progress(client: httpx.Client) -> dict[str, Any]:
    for _ in range(300):
        body: dict[str, Any] = client.get(f"{PREFIX}/achievements").json()
        if body["scan_meta"].get("sessions_scanned_so_far"):
            return body
        time.sleep(0.05)
    raise AssertionError("no progress of the other scan")


def test_a_recap_includes_messages_since_the_last_request(
    client: httpx.Client, builder: HistoryBuilder
) -> None:
    wait_for_snapshot(client)
    requested = {"period": "2026-01"}
    before = client.get(f"{PREFIX}/recap", params=requested).json()
    assert client.get(f"{PREFIX}/recap", params=requested).json() == before
    builder.run_shell("git commit -m y")
    assert client.post(f"{PREFIX}/rescan").status_code == 200
    after = client.get(f"{PREFIX}/recap", params=requested).json()
    assert after["totals"]["commits"] == before["totals"]["commits"] + 1
