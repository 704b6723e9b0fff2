"""The pages: links lead somewhere, and nothing private or local is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_can_be_found_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("**/*.md"):
        name = page.relative_to(ROOT / "docs")
        if page.name != "index.md" and name.parts[0] != "adr":
            assert f"({name})" in index, f"docs/index.md does not mention {name}"


def test_no_text_names_a_package_of_ours_to_install_which_others_could_register() -> None:
    name = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    texts = [
        *PAGES,
        ROOT / "hermes",
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "web/src").rglob("*.ts*"),
    ]
    assert [str(path) for path in texts if name in path.read_text("utf-8")] == []
