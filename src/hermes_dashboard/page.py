"""The page's own files: where they are, and how they are served."""

from __future__ import annotations

import mimetypes
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response

from hermes_dashboard.auth.gate import NONCE
from hermes_dashboard.safe_path import inside

if TYPE_CHECKING:
    from starlette.types import Scope

PACKAGE: Final = Path(__file__).resolve().parent
ROOT: Final = PACKAGE.parent.parent
SET_UP: Final = ROOT / "tools" / "set_up_page.py"
INDEX: Final = "index.html"
PLACEHOLDER: Final = "__NONCE__"
FOREVER: Final = "public, max-age=31536000, immutable"
ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
TYPES: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".woff2": "font/woff2"}
NOT_BUILT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hermes</title></head><body>
<h1>The page has not been built yet</h1>
<p>The dashboard runs, but its page is not here. Build it in the folder of the checkout with</p>
<pre>python3 tools/set_up_page.py</pre>
<p>and load this page again. Installed packages of Hermes have it built in.</p>
</body></html>
"""


class Page(NamedTuple):
    """The folder with the built page; it need not exist."""

    folder: Path

    @classmethod
    def locate(cls) -> Self:
        """In an installed package it lies inside; in a checkout it is built into `web/dist`."""
        packed = PACKAGE / "page"
        return cls(packed if (packed / INDEX).is_file() else ROOT / "web" / "dist")

    @property
    def is_built(self) -> bool:
        """Whether there is something to show."""
        return (self.folder / INDEX).is_file()

    def response(self, path: str, scope: Scope) -> Response:
        """A file of the page; the page itself for every other path, which it reads then."""
        found = inside(self.folder, path) if path else None
        if found is not None and found.name != INDEX:
            return self._file(found, scope, is_forever=path.startswith("assets/"))
        if path == "assets" or path.startswith("assets/"):
            return PlainTextResponse("File not found.", 404)
        return self._index(scope)

    def _index(self, scope: Scope) -> Response:
        headers = {"Cache-Control": "no-store"}
        if not self.is_built:
            return HTMLResponse(NOT_BUILT, headers=headers)
        text = (self.folder / INDEX).read_text("utf-8")
        return HTMLResponse(text.replace(PLACEHOLDER, scope[NONCE]), headers=headers)

    def _file(self, path: Path, scope: Scope, *, is_forever: bool) -> Response:
        headers = {
            "Cache-Control": FOREVER if is_forever else "no-cache",
            "Vary": "Accept-Encoding",
        }
        kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
        for encoding, suffix in ENCODINGS:
            packed = path.with_name(path.name + suffix)
            if encoding in _accepted(scope) and packed.is_file():
                headers["Content-Encoding"] = encoding
                path = packed
                break
        return FileResponse(path, headers=headers, media_type=kind or "application/octet-stream")


def ensure() -> bool:
    """Have the page built from its sources, in a checkout; whether that went well.

    The child tells what it does, and what stands in its way, on standard error.
    """
    if not SET_UP.is_file():
        return True  # an installed package has it built in
    return subprocess.run([sys.executable, str(SET_UP)], check=False).returncode == 0


def _accepted(scope: Scope) -> set[str]:
    """The encodings that a browser takes."""
    lines = [
        value.decode("latin-1") for key, value in scope["headers"] if key == b"accept-encoding"
    ]
    words = (one.partition(";") for line in lines for one in line.split(","))
    return {name.strip() for name, _, quality in words if quality.strip() not in {"q=0", "q=0.0"}}
