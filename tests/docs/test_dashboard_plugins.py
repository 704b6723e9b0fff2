"""What plugins of the dashboard may rely on is written down, and what is written down is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "dashboard-plugins.md").read_text("utf-8")
TYPES = (ROOT / "web" / "src" / "plugins" / "types.ts").read_text("utf-8")
SDK = (ROOT / "web" / "src" / "plugins" / "sdk.ts").read_text("utf-8")


def members(interface: str) -> set[str]:
    """The names of an interface's own members."""
    match = re.search(rf"export interface {interface} \{{\n(.*?)\n\}}", TYPES, re.DOTALL)
    assert match is not None
    return set(re.findall(r"^  (\w+)[(:<]", match[1], re.MULTILINE))


def test_every_part_of_the_sdk_is_documented() -> None:
    assert [name for name in members("PluginSdk") if name not in PAGE] == []


def test_every_component_is_documented_and_every_documented_one_exists() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `components` |"))
    assert set(re.findall(r"`(\w+)`", row)) - {"components"} == members("PluginComponents")


def test_the_version_is_the_real_one() -> None:
    match = re.search(r'sdkVersion: "([\d.]+)"', SDK)
    assert match is not None
    assert f"version {match[1]}" in PAGE


def test_every_slot_of_the_page_is_documented() -> None:
    sources = (ROOT / "web" / "src").rglob("*.tsx")
    used = {
        text for path in sources for text in re.findall(r'<Slot name="([\w-]+)"', path.read_text())
    }
    assert used
    assert [name for name in used if f"`{name}`" not in PAGE] == []


def test_every_key_of_a_manifest_is_documented() -> None:
    source = (ROOT / "src" / "hermes_dashboard" / "plugins" / "tabs.py").read_text("utf-8")
    keys = set(re.findall(r'\.get\("(\w+)"', source)) | set(re.findall(r'\["(\w+)"\]', source))
    assert keys
    result = set(re.findall(r"`(?:tab\.)?(\w+)`", PAGE)) | {"tab"}
    assert keys <= result
