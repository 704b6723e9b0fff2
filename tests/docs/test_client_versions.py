"""The versions of API clients in the documentation are those that the tests use."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"openai": "openai", "litellm": "LiteLLM", "langchain-openai": "langchain-openai"}


def test_the_documented_versions_of_clients_are_the_pinned_ones() -> None:
    lock = (ROOT / "requirements/clients.lock").read_text("utf-8")
    page = (ROOT / "docs/reference/api.md").read_text("utf-8")
    for name, shown in {**NAMES, "llm": "llm"}.items():
        pinned = re.search(rf"^{name}==(\S+)", lock, re.MULTILINE)
        assert pinned is not None
        assert f"{shown} {pinned[1]}" in page
