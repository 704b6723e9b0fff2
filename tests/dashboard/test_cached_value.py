"""Values that take long to find are kept, until the configuration changes or they are old."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING

from hermes_core.config.file import ConfigFile
from hermes_dashboard.caches import CachedValue, LatestValue
from hermes_dashboard.resources import health

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx
    import pytest


def test_a_value_is_found_once_for_many_requests(hermes_home: Path) -> None:
    numbers = count()
    kept = CachedValue(lambda: next(numbers), seconds=600)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: kept.get(), range(64))) == {0}


def test_a_change_of_the_configuration_and_time_end_it(hermes_home: Path) -> None:
    numbers = count()
    kept = CachedValue(lambda: next(numbers), seconds=600)
    assert kept.get() == 0
    ConfigFile.of_home().set("agent.approvals", "plan")
    assert (kept.get(), kept.get()) == (1, 1)
    ConfigFile.of_home().set("keys.openai", "sk-1")
    assert kept.get() == 2
    old = CachedValue(lambda: next(numbers), seconds=0)
    assert (old.get(), old.get()) == (3, 4)


def test_health_looks_for_a_model_once(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()

    def look(settings: object) -> None:
        del settings
        next(looks)

    monkeypatch.setattr(health, "usable_model", look)
    for _ in range(5):
        checks = {each["name"]: each for each in client.get("/api/health").json()["checks"]}
        assert "No model is configured" in checks["model"]["detail"]
    client.get("/api/overview")
    assert next(looks) == 1


def test_a_value_is_found_again_when_its_key_changes() -> None:
    numbers, kept = count(), LatestValue[int]()
    assert [kept.get(key, lambda: next(numbers)) for key in ("a", "a", "b", "a")] == [0, 0, 1, 2]
