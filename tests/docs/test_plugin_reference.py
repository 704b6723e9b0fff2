"""Everything a plugin is given is in the reference, and nothing else is."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

from hermes_compat.plugins.interface import OriginalContext
from hermes_compat.plugins.modules import MODULES
from hermes_compat.plugins.unsupported import UNSUPPORTED_METHODS, UNSUPPORTED_MODULES
from hermes_plugin_host.callbacks import CALLBACK_TIMEOUT_SECONDS, MAX_HANGS
from hermes_plugin_host.manifest import PLUGIN_KINDS, PluginManifest
from hermes_state.delivery.boundaries import MAX_ATTEMPTS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "reference" / "plugins.md").read_text("utf-8")
ORIGINAL = (ROOT / "docs" / "reference" / "plugins-of-hermes-agent.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "how-to" / "write-a-plugin.md").read_text("utf-8")


def public_methods() -> dict[str, object]:
    return {
        name: method
        for name, method in inspect.getmembers(OriginalContext, callable)
        if not name.startswith("_")
    }


def test_every_method_is_documented_with_its_arguments() -> None:
    documented = dict(re.findall(r"^\| `(\w+)\(([^`]*)\)` \|", TEXT, flags=re.MULTILINE))
    assert set(documented) == set(public_methods())
    for name, method in public_methods().items():
        names = [
            parameter for parameter in inspect.signature(method).parameters if parameter != "self"
        ]  # type: ignore[arg-type]
        words = [word.split("=")[0].strip() for word in documented[name].split(", ")]
        assert [word.lstrip("*") for word in words if word != "*"] == names, name


def test_every_method_is_in_the_guide() -> None:
    for name in public_methods():
        assert f"ctx.{name}" in GUIDE, name


def test_every_attribute_is_documented() -> None:
    context = OriginalContext("key", PluginManifest("name"))
    for name in vars(context):
        assert f"| `{name}` |" in TEXT, name


def test_every_key_of_the_manifest_is_documented() -> None:
    section = TEXT.partition("## `plugin.yaml`")[2].partition("## `ctx`")[0]
    for field in fields(PluginManifest):
        assert f"`{field.name}`" in section, field.name
    for kind in PLUGIN_KINDS:
        assert f"`{kind}`" in section, kind


def test_the_numbers_are_the_real_ones() -> None:
    assert (CALLBACK_TIMEOUT_SECONDS, MAX_HANGS, MAX_ATTEMPTS) == (2.0, 3, 8)
    for words in ("2 seconds", "three times in a row", "eight attempts"):
        assert words in TEXT, words


def test_everything_that_is_refused_is_documented_with_its_reason() -> None:
    refused = ORIGINAL.partition("## Methods of `ctx` that are refused")[2]
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", refused, flags=re.MULTILINE))
    assert rows == {**UNSUPPORTED_METHODS, **UNSUPPORTED_MODULES}


def test_every_module_for_plugins_of_hermes_agent_is_documented() -> None:
    for name in MODULES:
        assert f"`{name}" in ORIGINAL, name


def test_a_supported_method_is_not_refused() -> None:
    assert not set(public_methods()) & set(UNSUPPORTED_METHODS)
