"""The page's own files: packed, kept for ever where their names say so, and never cached before."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest

from support.dashboards import dashboard, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state import SessionDB
    from support.dashboards import Served

HTML = '<meta name="csp-nonce" content="__NONCE__"><script src="/assets/a-1.js"></script>'


@pytest.fixture
def built(db: SessionDB, tmp_path: Path) -> Iterator[Served]:
    page = tmp_path / "dist"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text(HTML)
    (page / "favicon.svg").write_text("<svg/>")
    (page / "assets" / "a-1.js").write_text("plain()")
    (page / "assets" / "a-1.js.gz").write_bytes(gzip.compress(b"packed()"))
    (page / "assets" / "a-1.js.br").write_bytes(b"brotli bytes")
    with dashboard(parts_of(db), page=page) as found:
        yield found


def test_each_page_has_a_nonce_of_its_own_that_the_policy_names(built: Served) -> None:
    seen = set()
    for path in ("/", "/sessions/20260101_000000_abc", "/index.html"):
        answer = built.stranger.get(path)
        assert answer.headers["cache-control"] == "no-store"
        nonce = re.findall('csp-nonce" content="([^"]+)"', answer.text)[0]
        assert f"'nonce-{nonce}'" in answer.headers["content-security-policy"]
        seen.add(nonce)
    assert len(seen) == 3


def test_files_with_hashed_names_are_kept_for_ever(built: Served) -> None:
    plain = {"Accept-Encoding": "identity"}
    answer = built.stranger.get("/assets/a-1.js", headers=plain)
    assert answer.text == "plain()"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert built.stranger.get("/favicon.svg").headers["cache-control"] == "no-cache"


def test_files_come_packed_as_the_browser_likes(built: Served) -> None:
    answer = built.stranger.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip"})
    assert answer.text == "packed()"
    assert answer.headers["vary"] == "Accept-Encoding"
    none = built.stranger.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert none.text == "plain()"
    both = {"Accept-Encoding": "gzip, br;q=0.9"}
    with built.stranger.stream("GET", "/assets/a-1.js", headers=both) as stream:
        assert stream.headers["content-encoding"] == "br"
        assert b"".join(stream.iter_raw()) == b"brotli bytes"


def test_a_missing_asset_is_not_the_page(built: Served) -> None:
    assert built.stranger.get("/assets/gone.js").status_code == 404
    assert built.stranger.get("/assets").status_code == 404
    assert built.stranger.head("/").status_code == 200


def test_a_page_that_was_not_built_says_how(db: SessionDB, tmp_path: Path) -> None:
    with dashboard(parts_of(db), page=tmp_path / "nothing") as served:
        answer = served.stranger.get("/")
        assert answer.status_code == 200
        assert "tools/set_up_page.py" in answer.text
        assert served.client.get("/api/models").status_code == 200
