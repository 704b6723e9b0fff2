"""The setup of the virtual environment."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "set_up.py"


@pytest.fixture(scope="module")
def set_up() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("set_up", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def system_python(set_up: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python of the system, of the version that runs the tests."""
    monkeypatch.setattr(set_up, "SYSTEM_PROGRAMS", tmp_path)
    program = tmp_path / "python{}.{}".format(*sys.version_info)
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    return program


def use_build(monkeypatch: pytest.MonkeyPatch, arguments: str) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": arguments}.get)


def test_a_python_without_optimizations_is_replaced_by_that_of_the_system(
    set_up: ModuleType, system_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_build(monkeypatch, "'--enable-shared'")
    assert set_up.base_python() == system_python


def test_an_optimized_python_is_used(
    set_up: ModuleType, system_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_build(monkeypatch, "'--enable-shared' '--enable-optimizations'")
    assert set_up.base_python() == Path(sys.executable).resolve()


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_usable_python_of_the_system_the_own_one_is_used(
    set_up: ModuleType, system_python: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    use_build(monkeypatch, "")
    if is_there:
        system_python.write_text("#!/bin/sh\nexit 1\n")  # without the module venv
    else:
        system_python.unlink()
    assert set_up.base_python() == Path(sys.executable).resolve()
