"""`hermes plugins install`, `update`, `remove` and `doctor`, as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_plugin_host.installation.installer import PluginSource
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

MANIFEST = """\
name: dice
version: 1.0.0
description: Rolls dice
requires_env: [HOME]
permissions: {network: [dice.example.org], files: true, secrets: [DICE_KEY]}
"""
CODE = """\
import os, subprocess, urllib.request
from pathlib import Path
from . import numbers_of
def register(ctx):
    ctx.register_cli_command("dice", "roll", handler_fn=lambda a: print(numbers_of.LARGEST))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "sources" / "dice"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(MANIFEST)
    (folder / "__init__.py").write_text(CODE)
    (folder / "numbers_of.py").write_text("LARGEST = 6\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "old.pyc").write_bytes(b"x")
    return folder


def enabled() -> tuple[str, ...]:
    return tuple(ConfigFile.of_home().settings().get_list("plugins.enabled"))


def installed(hermes: Hermes, *arguments: str) -> dict[str, Any]:
    result = hermes("plugins", "install", *arguments, "--json")
    assert result.code == 0, result.err
    report: dict[str, Any] = json.loads(result.out)
    return report


def test_a_folder_is_installed_shown_and_enabled(
    hermes: Hermes, hermes_home: Path, source: Path
) -> None:
    result = hermes("plugins", "install", str(source), "--yes")
    assert result.code == 0, result.err
    for text in (
        "sha256",
        "network: dice.example.org; files; secrets: DICE_KEY",
        "HOME",
        "urllib",
        "subprocess",
        "A plugin runs with all rights of Hermes.",
        "Installed and enabled dice.",
    ):
        assert text in result.out
    assert hermes("dice").out == "6\n"
    assert not (hermes_home / "plugins" / "dice" / "__pycache__" / "old.pyc").exists()
    assert enabled() == ("dice",)


def test_without_a_terminal_and_yes_it_is_only_installed(hermes: Hermes, source: Path) -> None:
    result = hermes("plugins", "install", str(source))
    assert (result.code, "not enabled" in result.err) == (0, True)
    assert enabled() == ()
    again = hermes("plugins", "install", str(source), "--yes")
    assert again.code == 2
    assert "already installed. Run `hermes plugins update dice`" in again.err


def test_a_git_repository_is_installed_and_updated(
    hermes: Hermes, hermes_home: Path, source: Path
) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", "-C", str(source), *identity, *arguments],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    report = installed(hermes, f"file://{source}", "--yes")
    assert (report["name"], report["state"]) == ("dice", "loaded")
    assert report["commit"] == git("rev-parse", "HEAD")
    assert report["permissions"]["declared"][0] == "network: dice.example.org"
    assert not (hermes_home / "plugins" / "dice" / ".git").exists()
    assert hermes("plugins", "update", "dice").out == "dice is up to date.\n"
    (source / "numbers_of.py").write_text("LARGEST = 20\n")
    git("commit", "-qam", "two")
    asked = hermes("plugins", "update", "dice")
    assert (asked.code, "pass --yes" in asked.err) == (2, True)
    assert hermes("plugins", "update", "dice", "--yes").code == 0
    assert hermes("dice").out == "20\n"


def test_the_doctor_notices_changed_files_and_problems(
    hermes: Hermes, hermes_home: Path, source: Path
) -> None:
    installed(hermes, str(source), "--yes")
    assert hermes("plugins", "doctor").code == 0
    (hermes_home / "plugins" / "dice" / "numbers_of.py").write_text("1 / 0")
    result = hermes("plugins", "doctor", "dice", "--json")
    (report,) = json.loads(result.out)
    assert result.code == 1
    assert report["problems"][0] == "ZeroDivisionError: division by zero"
    assert "its files have changed since they were installed" in report["problems"][1]
    assert hermes("plugins", "update", "dice", "--yes").code == 0  # repairs it
    assert hermes("plugins", "doctor", "dice").code == 0


def test_the_doctor_names_commands_that_are_not_used(
    hermes: Hermes, hermes_home: Path, source: Path
) -> None:
    installed(hermes, str(source), "--yes")
    code = "def register(ctx):\n"
    for name in ("dice", "chat"):
        code += f"    ctx.register_cli_command({name!r}, 'x', handler_fn=print)\n"
    for name in ("help", "no name", "fine"):
        code += f"    ctx.register_command({name!r}, str)\n"
    make_plugin(hermes_home, "other", code)
    assert hermes("plugins", "enable", "other").code == 0
    (report,) = json.loads(hermes("plugins", "doctor", "other", "--json").out)
    assert [note for note in report["notes"] if "command" in note] == [
        "the command /help is ignored: Hermes has a command with this name",
        "the command /no name is ignored: invalid name",
        "the command hermes dice is ignored: the plugin dice has a command with this name",
        "the command hermes chat is ignored: Hermes has a command with this name",
    ]


def test_a_removed_plugin_leaves_nothing(hermes: Hermes, hermes_home: Path, source: Path) -> None:
    installed(hermes, str(source), "--yes")
    assert hermes("plugins", "remove", "dice").code == 2  # nobody to ask
    assert hermes("plugins", "remove", "dice", "--yes").out == "Removed dice.\n"
    assert enabled() == ()
    assert not list((hermes_home / "plugins").rglob("*dice*"))
    assert hermes("plugins", "remove", "irc", "--yes").code == 2


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str], **extra: str) -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: A sample\n"
    metadata += extra.get("requires", "")
    wheel = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
    if "entry" in extra:
        content[f"{info}/entry_points.txt"] = f"[hermes_agent.plugins]\n{extra['entry']}\n"
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels instead of a package index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for tool in ("UV", "PIP"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_OFFLINE", "1")  # its indexes may be configured elsewhere
    return folder


def test_a_package_is_installed_with_its_requirements(hermes: Hermes, index: Path) -> None:
    code = "import lucky_numbers\ndef register(ctx):\n    ctx.register_cli_command(\n"
    code += "        'lucky', 'x', handler_fn=lambda a: print(lucky_numbers.BEST))\n"
    write_wheel(index, "lucky_numbers", "1.0", {"lucky_numbers.py": "BEST = 7\n"})
    write_wheel(
        index,
        "hermes_lucky",
        "2.0",
        {"hermes_lucky/__init__.py": code},
        entry="lucky = hermes_lucky",
        requires="Requires-Dist: lucky_numbers\n",
    )
    report = installed(hermes, "hermes-lucky", "--yes")
    assert (report["name"], report["version"], report["state"]) == ("lucky", "2.0", "loaded")
    assert hermes("lucky").out == "7\n"
    assert hermes("plugins", "doctor", "lucky").code == 0
    not_a_plugin = hermes("plugins", "install", "lucky-numbers", "--yes")
    assert not_a_plugin.code == 1
    assert "is not a plugin" in not_a_plugin.err


def test_requirements_are_installed_in_a_folder_of_their_own(
    hermes: Hermes, hermes_home: Path, index: Path, source: Path
) -> None:
    write_wheel(index, "lucky_numbers", "1.0", {"lucky_numbers.py": "BEST = 7\n"})
    (source / "requirements.txt").write_text("# numbers\nlucky_numbers>=1\n")
    (source / "numbers_of.py").write_text("from lucky_numbers import BEST as LARGEST\n")
    assert installed(hermes, str(source), "--yes")["requirements"] == ["lucky_numbers>=1"]
    assert hermes("dice").out == "7\n"
    assert (hermes_home / "plugins" / ".libraries" / "dice" / "lucky_numbers.py").exists()


def test_requirements_that_do_not_fit_are_refused(
    hermes: Hermes, hermes_home: Path, index: Path, source: Path
) -> None:
    write_wheel(index, "httpx2", "0.0.1", {"httpx2.py": "x = 1\n"})
    (source / "requirements.txt").write_text("httpx2==0.0.1\n")
    result = hermes("plugins", "install", str(source), "--yes")
    assert result.code == 1
    assert "the plugin needs httpx2 0.0.1, and Hermes uses" in result.err
    (source / "requirements.txt").write_text("no-such-package\n")
    result = hermes("plugins", "install", str(source), "--yes")
    assert (result.code, "the requirements cannot be installed" in result.err) == (1, True)
    (source / "requirements.txt").write_text("-r other.txt\n")
    assert "is not supported" in hermes("plugins", "install", str(source), "--yes").err
    assert not (hermes_home / "plugins" / "dice").exists()
    assert enabled() == ()


def test_plugins_share_a_version_or_the_second_is_refused(
    hermes: Hermes, hermes_home: Path, index: Path, source: Path, tmp_path: Path
) -> None:
    for version in ("1.0", "2.0"):
        write_wheel(index, "lucky_numbers", version, {"lucky_numbers.py": "BEST = 7\n"})
    (source / "requirements.txt").write_text("lucky_numbers<2\n")
    installed(hermes, str(source), "--yes")
    second = tmp_path / "second"
    second.mkdir()
    (second / "plugin.yaml").write_text("name: second\n")
    (second / "__init__.py").write_text("def register(ctx):\n    pass\n")
    (second / "requirements.txt").write_text("lucky_numbers\n")  # any version
    installed(hermes, str(second), "--yes")
    libraries = hermes_home / "plugins" / ".libraries"
    assert (libraries / "second" / "lucky_numbers-1.0.dist-info").is_dir()
    (second / "requirements.txt").write_text("lucky_numbers>=2\n")
    result = hermes("plugins", "update", "second", "--yes")
    assert result.code == 1
    refusal = "the plugin needs lucky-numbers 2.0, and the plugin dice uses 1.0"
    assert refusal in result.err
    metadata = libraries / "second" / "lucky_numbers-1.0.dist-info" / "METADATA"
    text = metadata.read_text()
    metadata.unlink()  # the installer may have linked it
    metadata.write_text(text.replace("1.0", "2.0"))
    assert refusal in hermes("plugins", "doctor", "second").out


def test_a_symbolic_link_and_a_folder_that_is_not_a_plugin_are_refused(
    hermes: Hermes, source: Path, tmp_path: Path
) -> None:
    (source / "link").symlink_to("/etc/passwd")
    assert "symbolic link: link" in hermes("plugins", "install", str(source), "--yes").err
    (source / "link").unlink()
    os.mkfifo(source / "pipe")
    refused = hermes("plugins", "install", str(source), "--yes")
    assert (refused.code, "a special file: pipe" in refused.err) == (1, True)
    (source / "pipe").unlink()
    with (source / "huge").open("wb") as file:
        file.truncate(201 << 20)
    assert "200 MiB are allowed" in hermes("plugins", "install", str(source), "--yes").err
    (source / "huge").unlink()
    (source / "plugin.yaml").write_text("name: [1")
    damaged = hermes("plugins", "install", str(source), "--yes")
    assert (damaged.code, damaged.err.startswith("hermes: plugin.yaml is not valid")) == (1, True)
    (tmp_path / "empty").mkdir()
    assert "not a plugin" in hermes("plugins", "install", str(tmp_path / "empty"), "--yes").err


@pytest.mark.parametrize(
    ("text", "kind", "ref"),
    [
        ("https://example.org/dice.git#v2", "git", "v2"),
        ("git@example.org:me/dice.git", "git", ""),
        ("hermes-dice", "package", ""),
        ("hermes-dice==1.2", "package", ""),
    ],
)
def test_kinds_of_sources(text: str, kind: str, ref: str) -> None:
    source = PluginSource.parse(text)
    assert (source.kind, source.ref) == (kind, ref)


def test_other_texts_are_no_source() -> None:
    for text in ("--upload-pack=x", "a b", ""):
        with pytest.raises(UsageError):
            PluginSource.parse(text)
