"""Write the reference of the dashboard's server: for programs and for people.

.venv/bin/python tools/dashboard_reference.py

docs/reference/dashboard.openapi.json, from which the page's types are made, and the tables of
docs/reference/dashboard-api.md.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hermes_state.engine.sqlite import driver

driver.install()

from hermes_dashboard.app import create_app  # noqa: E402 - as above
from hermes_dashboard.auth.access import Access  # noqa: E402 - after our SQLite is in place
from hermes_dashboard.auth.allowed_origins import allowed_origins  # noqa: E402 - as above
from hermes_dashboard.context import DashboardContext  # noqa: E402 - as above
from hermes_dashboard.page import Page  # noqa: E402 - as above
from hermes_dashboard.resources.gateway import GatewayAccess  # noqa: E402 - as above
from hermes_state import SessionDB  # noqa: E402 - as above

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
METHODS = ("get", "post", "put", "patch", "delete")
GROUPS = {
    "/api/backups": "Backups and imports",
    "/api/imports": "Backups and imports",
    "/api/auth": "Authentication",
    "/api/sessions": "Conversations",
    "/api/search": "Conversations",
    "/api/answers": "Conversations",
    "/api/trash": "Conversations",
    "/api/export": "Conversations",
    "/api/import": "Conversations",
    "/api/media": "Conversations",
    "/api/analytics": "Statistics",
    "/api/overview": "Statistics",
    "/api/models": "Chat",
    "/api/uploads": "Chat",
    "/api/transcriptions": "Chat",
    "/api/workspaces": "Chat",
    "/api/edits": "Conversations",
    "/api/memory": "Memory and skills",
    "/api/facts": "Memory and skills",
    "/api/skills": "Memory and skills",
    "/api/schedules": "Scheduled jobs",
}


REST = "Other"
ORDER = (
    "Authentication",
    "Conversations",
    "Statistics",
    "Chat",
    "Memory and skills",
    "Scheduled jobs",
    "Backups and imports",
    REST,
)


def description() -> dict[str, Any]:
    """The OpenAPI document, as the server gives it."""
    with tempfile.TemporaryDirectory() as folder, SessionDB(Path(folder) / "state.db") as db:
        home = Path(folder)
        parts = DashboardContext(db, home, GatewayAccess(db), list)
        access = Access(home, allowed_origins("127.0.0.1", 9229))
        openapi: dict[str, Any] = create_app(parts, access, Page(home), tabs=list).openapi()
    openapi["info"]["version"] = "1"  # a release of Hermes does not change it
    return openapi


def document(found: dict[str, Any]) -> str:
    """The same as a file."""
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def tables(found: dict[str, Any]) -> str:
    """Every address with its description, by group."""
    rows: dict[str, list[str]] = {}
    for path, methods in found["paths"].items():
        for method in METHODS:
            if method in methods:
                said = methods[method].get("description") or methods[method].get("summary", "")
                sentence = " ".join(said.split("\n\n")[0].split())
                rows.setdefault(_group(path), []).append(
                    f"| `{method.upper()} {path}` | {sentence} |"
                )
    head = "| endpoint | |\n| --- | --- |\n"
    parts = [f"### {item}\n\n{head}" + "\n".join(rows[item]) for item in ORDER if item in rows]
    return "\n\n".join(parts)


def _group(path: str) -> str:
    return next((name for start, name in GROUPS.items() if path.startswith(start)), REST)


def page(text: str, found: dict[str, Any]) -> str:
    """The page *text* with its tables as they are now."""
    result = f"<!-- addresses -->\n\n{tables(found)}\n\n<!-- end -->"
    return re.sub(r"<!-- addresses -->.*<!-- end -->", lambda _: result, text, flags=re.DOTALL)


def main() -> None:
    """Write all of it."""
    result = description()
    (REFERENCE / "dashboard.openapi.json").write_text(document(result), encoding="utf-8")
    path = REFERENCE / "dashboard-api.md"
    path.write_text(page(path.read_text(encoding="utf-8"), result), encoding="utf-8")


if __name__ == "__main__":
    main()
