"""Files of the page: compression, caching and the nonce."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest

from support.dashboards import dashboard, dashboard_context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

HTML = '<meta name="csp-nonce" content="__NONCE__"><script src="/assets/a-1.js"></script>'


@pytest.fixture
def built(db: SessionDB, tmp_path: Path) -> Iterator[RunningDashboard]:
    page = tmp_path / "dist"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text(HTML)
    (page / "favicon.svg").write_text("<svg/>")
    (page / "diagram.html").write_text("<script>draw()</script>")
    (page / "assets" / "a-1.js").write_text("plain()")
    (page / "assets" / "a-1.js.gz").write_bytes(gzip.compress(b"packed()"))
    (page / "assets" / "a-1.js.br").write_bytes(b"brotli bytes")
    with dashboard(dashboard_context(db), page=page) as running:
        yield running


def test_each_response_has_its_own_nonce_in_the_policy(built: RunningDashboard) -> None:
    nonces = set()
    for path in ("/", "/sessions/20260101_000000_abc", "/index.html"):
        response = built.anonymous.get(path)
        assert response.headers["cache-control"] == "no-store"
        nonce = re.findall('csp-nonce" content="([^"]+)"', response.text)[0]
        assert f"'nonce-{nonce}'" in response.headers["content-security-policy"]
        nonces.add(nonce)
    assert len(nonces) == 3


def test_diagrams_are_drawn_in_a_frame_without_an_origin_and_without_the_network(
    built: RunningDashboard,
) -> None:
    response = built.anonymous.get("/diagram.html")
    policy = response.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "sandbox allow-scripts", "frame-ancestors 'self'"} < set(policy)
    assert not any(part.startswith(("connect-src", "font-src", "frame-src")) for part in policy)
    assert "draw()" in response.text
    page = built.anonymous.get("/")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_files_with_hashed_names_are_immutable(built: RunningDashboard) -> None:
    plain = {"Accept-Encoding": "identity"}
    response = built.anonymous.get("/assets/a-1.js", headers=plain)
    assert response.text == "plain()"
    assert "immutable" in response.headers["cache-control"]
    assert response.headers["content-type"].startswith("text/javascript")
    assert built.anonymous.get("/favicon.svg").headers["cache-control"] == "no-cache"


def test_files_are_compressed_as_the_browser_accepts(built: RunningDashboard) -> None:
    response = built.anonymous.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip"})
    assert response.text == "packed()"
    assert response.headers["vary"] == "Accept-Encoding"
    none = built.anonymous.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert none.text == "plain()"
    both = {"Accept-Encoding": "gzip, br;q=0.9"}
    with built.anonymous.stream("GET", "/assets/a-1.js", headers=both) as stream:
        assert stream.headers["content-encoding"] == "br"
        assert b"".join(stream.iter_raw()) == b"brotli bytes"


def test_a_missing_asset_is_not_the_page(built: RunningDashboard) -> None:
    assert built.anonymous.get("/assets/gone.js").status_code == 404
    assert built.anonymous.get("/assets").status_code == 404
    assert built.anonymous.head("/").status_code == 200


def test_without_a_built_page_the_response_explains_how_to_build_it(
    db: SessionDB, tmp_path: Path
) -> None:
    with dashboard(dashboard_context(db), page=tmp_path / "nothing") as served:
        response = served.anonymous.get("/")
        assert response.status_code == 200
        assert "tools/set_up_page.py" in response.text
        assert served.client.get("/api/models").status_code == 200
