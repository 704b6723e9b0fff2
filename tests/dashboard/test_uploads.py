"""Uploads: private files under sanitized names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_dashboard.resources.uploads import MAX_BYTES, safe_name
from support.images import PIXEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2 as httpx

pytestmark = pytest.mark.clock


def test_an_upload_is_readable_by_its_owner_only(client: httpx.Client, hermes_home: Path) -> None:
    response = client.post("/api/uploads", params={"name": "face.png"}, content=PIXEL)
    fields = response.json()
    path = Path(fields.pop("path"))
    kind = {"media_type": "image/png", "is_image": True}
    assert fields == {"name": "face.png", "size": len(PIXEL), **kind}
    assert path.is_relative_to(hermes_home / "uploads")
    assert path.read_bytes() == PIXEL
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_image_that_no_model_can_read_is_rejected_and_removed(
    client: httpx.Client, hermes_home: Path
) -> None:
    response = client.post("/api/uploads", params={"name": "a.png"}, content=b"\x89PNG")
    assert response.status_code == 400
    assert response.json()["detail"].startswith("a.png is not a readable image")
    assert not [path for path in (hermes_home / "uploads").rglob("*") if path.is_file()]


def test_a_drawing_is_passed_as_a_file(client: httpx.Client) -> None:
    response = client.post("/api/uploads", params={"name": "a.svg"}, content=b"<svg/>")
    assert response.json()["is_image"] is False


def test_uploads_with_the_same_name_are_separate_files(client: httpx.Client) -> None:
    paths = {
        client.post("/api/uploads", params={"name": "a.txt"}, content=b"x").json()["path"]
        for _ in range(3)
    }
    assert len(paths) == 3


def test_an_oversized_upload_is_rejected_and_removed(
    client: httpx.Client, hermes_home: Path
) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BYTES // 1_000_000 + 1):
            yield b"x" * 1_000_000

    response = client.post("/api/uploads", params={"name": "a"}, content=chunks())
    assert response.status_code == 413
    assert "25 MB" in response.json()["detail"]
    assert not [path for path in (hermes_home / "uploads").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("written", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\x.exe", "x.exe"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("a\0b\n\x1b[31mc.txt", "a_b___31mc.txt"),
        ("$(rm -rf ~);`x`.png", "_(rm -rf _)__x_.png"),
        ("Grüße aus Köln.pdf", "Grüße aus Köln.pdf"),
        ("x" * 300 + ".png", "x" * 96 + ".png"),
    ],
)
def test_file_names_are_sanitized(written: str, safe: str) -> None:
    assert safe_name(written) == safe


def test_an_upload_requires_a_name(client: httpx.Client) -> None:
    assert client.post("/api/uploads", content=b"x").status_code == 422
