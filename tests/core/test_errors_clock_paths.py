"""Errors, clocks and paths."""

from __future__ import annotations

import inspect
import re
import stat
import time
from pathlib import Path

import pytest

from hermes_core import errors, paths
from hermes_core.clock import ManualClock, SystemClock

pytestmark = pytest.mark.clock


def test_the_documented_error_tree_matches_the_classes():
    documented = re.findall(r"^ +(\w+Error) ", errors.__doc__, re.MULTILINE)
    defined = [name for name, cls in vars(errors).items() if inspect.isclass(cls)]
    assert sorted([*documented, "HermesError"]) == sorted(defined)


def test_every_error_is_a_hermes_error():
    classes = [cls for cls in vars(errors).values() if inspect.isclass(cls)]
    assert all(issubclass(cls, errors.HermesError) for cls in classes)
    assert errors.ConfigError.exit_code == 2
    assert errors.StoreError.exit_code == 1


def test_a_manual_clock_moves_only_explicitly():
    clock = ManualClock(now=100.0, monotonic=5.0)
    clock.advance(2)
    assert (clock.now(), clock.monotonic()) == (102.0, 7.0)
    clock.jump(-50)
    assert (clock.now(), clock.monotonic()) == (52.0, 7.0)


def test_the_system_clock_is_the_time():
    clock = SystemClock()
    assert abs(clock.now() - time.time()) < 5
    assert clock.monotonic() <= clock.monotonic()


def test_hermes_home_has_precedence(monkeypatch, tmp_path):
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "h"))
    assert paths.hermes_home() == tmp_path / "h"
    assert paths.state_db_path() == tmp_path / "h" / "state.db"
    inside = [paths.config_path(), paths.env_path(), paths.plugins_path()]
    assert all(path.parent == tmp_path / "h" for path in [*inside, paths.logs_path()])


def test_an_existing_default_folder_has_precedence_over_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("HERMES_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert paths.hermes_home() == tmp_path / "data" / "hermes"
    (tmp_path / ".hermes").mkdir()
    assert paths.hermes_home() == tmp_path / ".hermes"


def test_without_any_variable_the_default_folder_is_used(monkeypatch, tmp_path):
    for name in ("HERMES_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.hermes_home() == tmp_path / ".hermes"


def test_new_folders_are_private_and_existing_ones_unchanged(tmp_path):
    tmp_path.chmod(0o755)
    created = paths.private_folder(tmp_path / "a" / "b")
    assert [stat.S_IMODE(p.stat().st_mode) for p in (created, created.parent, tmp_path)] == [
        0o700,
        0o700,
        0o755,
    ]


def test_other_users_permissions_on_a_file_are_removed(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    path.chmod(0o644)
    assert stat.S_IMODE(paths.private_file(path).stat().st_mode) == 0o600


@pytest.mark.parametrize("variable", ["HERMES_HOME"])
def test_only_the_paths_module_reads_the_home_variable(variable):
    folder = Path(paths.__file__).parent
    readers = {p.name for p in folder.glob("*.py") if f'"{variable}"' in p.read_text()}
    assert readers == {"paths.py"}
