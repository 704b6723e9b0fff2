"""The built files of the page: location and responses."""

from __future__ import annotations

import mimetypes
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response

from hermes_dashboard.auth.gate import NONCE
from hermes_dashboard.safe_path import resolve_inside

if TYPE_CHECKING:
    from starlette.types import Scope

PACKAGE: Final = Path(__file__).resolve().parent
ROOT: Final = PACKAGE.parent.parent
BUILD_SCRIPT: Final = ROOT / "tools" / "set_up_page.py"
INDEX_FILE: Final = "index.html"
NONCE_PLACEHOLDER: Final = "__NONCE__"
IMMUTABLE_CACHE: Final = "public, max-age=31536000, immutable"
ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
MEDIA_TYPES: Final = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
NOT_BUILT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hermes</title></head><body>
<h1>The web page is not built</h1>
<p>The dashboard server is running, but this checkout has no built page. Build it in the root
folder of the checkout, then reload:</p>
<pre>python3 tools/set_up_page.py</pre>
<p>Installed packages of Hermes include the page.</p>
</body></html>
"""


class Page(NamedTuple):
    """The folder with the built page; it need not exist."""

    folder: Path

    @classmethod
    def locate(cls) -> Self:
        """The page inside an installed package, else `web/dist` of the checkout."""
        packaged = PACKAGE / "page"
        return cls(packaged if (packaged / INDEX_FILE).is_file() else ROOT / "web" / "dist")

    @property
    def is_built(self) -> bool:
        """Whether the page is built."""
        return (self.folder / INDEX_FILE).is_file()

    def response(self, path: str, scope: Scope) -> Response:
        """A file of the page, or `index.html` for every other path (client-side routing)."""
        file = resolve_inside(self.folder, path) if path else None
        if file is not None and file.name != INDEX_FILE:
            return self._file(file, scope, is_immutable=path.startswith("assets/"))
        if path == "assets" or path.startswith("assets/"):
            return PlainTextResponse("File not found.", 404)
        return self._index(scope)

    def _index(self, scope: Scope) -> Response:
        headers = {"Cache-Control": "no-store"}
        if not self.is_built:
            return HTMLResponse(NOT_BUILT, headers=headers)
        text = (self.folder / INDEX_FILE).read_text("utf-8")
        return HTMLResponse(text.replace(NONCE_PLACEHOLDER, scope[NONCE]), headers=headers)

    def _file(self, path: Path, scope: Scope, *, is_immutable: bool) -> Response:
        headers = {
            "Cache-Control": IMMUTABLE_CACHE if is_immutable else "no-cache",
            "Vary": "Accept-Encoding",
        }
        media_type = MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
        for encoding, suffix in ENCODINGS:
            compressed = path.with_name(path.name + suffix)
            if encoding in _accepted_encodings(scope) and compressed.is_file():
                headers["Content-Encoding"] = encoding
                path = compressed
                break
        return FileResponse(
            path, headers=headers, media_type=media_type or "application/octet-stream"
        )


def ensure_built() -> bool:
    """Build the page in a checkout if it is missing or outdated; whether it is usable.

    The child process reports progress and errors on standard error.
    """
    if not BUILD_SCRIPT.is_file():
        return True  # an installed package includes the page
    return subprocess.run([sys.executable, str(BUILD_SCRIPT)], check=False).returncode == 0


def _accepted_encodings(scope: Scope) -> set[str]:
    """The encodings that the client accepts."""
    headers = [
        value.decode("latin-1") for key, value in scope["headers"] if key == b"accept-encoding"
    ]
    entries = (entry.partition(";") for header in headers for entry in header.split(","))
    return {name.strip() for name, _, quality in entries if quality.strip() not in {"q=0", "q=0.0"}}
