"""The lock files install on every supported platform, from wheels alone.

uv resolves them against the package registry, which must be reachable. Nothing is downloaded
but metadata.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
PLATFORMS = {
    "Linux x86-64, glibc 2.28": "x86_64-manylinux_2_28",
    "Linux arm64, glibc 2.28": "aarch64-manylinux_2_28",
    "Linux x86-64, musl": "x86_64-unknown-linux-musl",
    "Linux arm64, musl": "aarch64-unknown-linux-musl",
    "macOS on Intel": "x86_64-apple-darwin",
    "macOS on Apple silicon": "aarch64-apple-darwin",
}
LOCK_FILES = (
    "requirements/runtime.lock",
    "requirements/installer.lock",
    "src/gateway/platforms/discord/requirements.lock",
    "src/gateway/platforms/email/requirements.lock",
    "src/gateway/platforms/matrix/requirements.lock",
    "src/gateway/platforms/slack/requirements.lock",
    "src/gateway/platforms/telegram/requirements.lock",
    "src/hermes_acp/requirements.lock",
    "src/hermes_agent/mcp/requirements.lock",
    "src/hermes_state/engine/postgres/requirements.lock",
)
# llama.cpp has no wheel for musl: `hermes models get` says so there.
BUILT_IN_MODEL = "src/hermes_agent/local/requirements.lock"


@pytest.fixture(scope="module")
def set_up() -> ModuleType:
    """The program that installs the runtime lock file."""
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "tools" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# A release between the oldest and the newest that lacks a wheel lacks it everywhere.
@pytest.mark.parametrize(
    ("platform", "python"),
    [
        *product(PLATFORMS, ["3.11", "3.14"]),
        *product(["Linux x86-64, glibc 2.28"], ["3.12", "3.13"]),
    ],
)
def test_the_lock_files_install_from_wheels(
    platform: str, python: str, set_up: ModuleType, tmp_path: Path
) -> None:
    target = PLATFORMS[platform]
    is_musl = target.endswith("musl")
    left_out = set_up.WITHOUT_MUSL_WHEEL[target.partition("-")[0]] if is_musl else frozenset()
    names = LOCK_FILES if is_musl else (*LOCK_FILES, BUILT_IN_MODEL)
    pins = []
    for number, name in enumerate(names):
        lock = tmp_path / f"{number}.lock"
        lock.write_text(set_up.without((ROOT / name).read_text(), left_out))
        pins += ["-r", str(lock)]
    done = subprocess.run(
        [
            str(UV), "pip", "install", "--dry-run", "--no-deps", "--require-hashes",
            "--only-binary", ":all:", "--target", str(tmp_path / "nowhere"),
            "--python-platform", target, "--python-version", python, *pins,
        ],
        capture_output=True, check=False, text=True, env={**os.environ, **set_up.ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode == 0, f"uv cannot resolve the lock files:\n{done.stderr}"
    assert "apsw==" in done.stderr


def test_only_packages_without_a_wheel_for_musl_are_left_out(set_up: ModuleType) -> None:
    text = (ROOT / "requirements" / "runtime.lock").read_text()
    left = set_up.without(text, set_up.WITHOUT_MUSL_WHEEL["aarch64"])
    missing = {line for line in text.splitlines() if line and line not in left.splitlines()}
    names = {line.partition("==")[0] for line in missing if not line.startswith(" ")}
    assert names == {"google-re2", "tree-sitter"}
    assert "tree-sitter-bash==" in left


def test_on_glibc_and_macos_nothing_is_left_out(
    set_up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"SOABI": "cpython-313-x86_64-linux-gnu", "HOST_GNU_TYPE": "x86_64-pc-linux-gnu"}
    monkeypatch.setattr(set_up.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(
        set_up.sysconfig, "get_config_vars", lambda *names: [variables[name] for name in names]
    )
    assert set_up.left_out() == frozenset()
    variables["SOABI"] = "cpython-313-x86_64-linux-musl"
    assert set_up.left_out() == {"google-re2"}
