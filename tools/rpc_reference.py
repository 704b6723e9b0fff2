"""Write docs/reference/rpc.openrpc.json and the tables of docs/reference/rpc.md from the code.

.venv/bin/python tools/rpc_reference.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_state.engine.sqlite import driver

driver.install()

from tui_gateway import openrpc  # noqa: E402 - after our SQLite is in place
from tui_gateway.methods import METHODS, TYPE_NAMES  # noqa: E402 - as above

if TYPE_CHECKING:
    from tui_gateway.methods import Param

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def document() -> str:
    """The machine-readable one."""
    return json.dumps(openrpc.document(METHODS), indent=2) + "\n"


def methods() -> str:
    """The table of methods."""
    rows = [
        f"| `{method.name}` | {', '.join(map(_param, method.params))} | {_sentence(method.help)} |"
        for method in METHODS.values()
    ]
    return "\n".join(["| method | parameters | what it does |", "| --- | --- | --- |", *rows])


def events() -> str:
    """The table of events."""
    rows = [
        f"| `{name}` | {', '.join(f'`{field}`' for field in openrpc.fields_of_type(kind))} | "
        f"{_sentence(kind.__doc__)} |"
        for name, kind in openrpc.EVENTS.items()
    ]
    return "\n".join(["| event | payload | when |", "| --- | --- | --- |", *rows])


def _sentence(text: str | None) -> str:
    """A docstring in one line."""
    return " ".join((text or "").split())


def _param(param: Param) -> str:
    kind = "" if param.kind == "str" else f" ({TYPE_NAMES[param.kind]})"
    return f"`{param.name}`{kind}" + ("" if param.is_required else ", optional")


def page(text: str) -> str:
    """The page *text* with its tables as they are now."""
    for heading, table in (("Methods", methods()), ("Events", events())):
        before, start, rest = text.partition(f"## {heading}\n\n")
        after = re.sub(r"\A(?:\|.*\n)+", "", rest)
        text = f"{before}{start}{table}\n{after}"
    return text


def main() -> None:
    """Write both."""
    (REFERENCE / "rpc.openrpc.json").write_text(document(), encoding="utf-8")
    path = REFERENCE / "rpc.md"
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
