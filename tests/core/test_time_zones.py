"""Zones are found by name, by TZ and by the system's file."""

from __future__ import annotations

from datetime import datetime
from importlib import resources
from zoneinfo import ZoneInfo

import pytest

from hermes_core.errors import ConfigError
from hermes_core.time_zones import find_zone, system_zone

pytestmark = pytest.mark.clock


def offset_hours(zone):
    return datetime(2026, 7, 1, tzinfo=zone).utcoffset().total_seconds() / 3600


def test_a_zone_is_found_by_name():
    assert find_zone("Asia/Kolkata") == ZoneInfo("Asia/Kolkata")


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "/etc/passwd", "a\0b", "Europe"])
def test_an_unknown_zone_is_refused(name):
    with pytest.raises(ConfigError, match="Unknown time zone"):
        find_zone(name)


@pytest.mark.parametrize("name", ["Asia/Kolkata", ":Asia/Kolkata"])
def test_an_empty_name_means_the_zone_of_the_system(monkeypatch, name):
    monkeypatch.setenv("TZ", name)
    assert find_zone("") == ZoneInfo("Asia/Kolkata")


def test_an_invalid_tz_variable_means_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Mars/Olympus")
    assert system_zone() == ZoneInfo("UTC")


def test_the_system_file_is_read_with_its_rules(monkeypatch, tmp_path):
    monkeypatch.delenv("TZ", raising=False)
    data = resources.files("tzdata").joinpath("zoneinfo/Asia/Kolkata").read_bytes()
    (tmp_path / "localtime").write_bytes(data)
    assert offset_hours(system_zone(tmp_path / "localtime")) == 5.5


def test_a_linked_zone_has_its_name(monkeypatch, tmp_path):
    monkeypatch.delenv("TZ", raising=False)
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Asia" / "Kolkata")
    assert system_zone(tmp_path / "localtime").key == "Asia/Kolkata"


@pytest.mark.parametrize("content", [None, b"not a zone"])
def test_without_a_usable_file_the_zone_is_utc(monkeypatch, tmp_path, content):
    monkeypatch.delenv("TZ", raising=False)
    if content:
        (tmp_path / "localtime").write_bytes(content)
    assert system_zone(tmp_path / "localtime") == ZoneInfo("UTC")
