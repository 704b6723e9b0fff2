"""Changing one setting in the text of config.yaml and leaving every other byte alone.

The library's own writer would lay the whole file out anew and drop comments that
stand behind a replaced list. So the parser only says where things are, the text is
edited there, and the result is parsed again: unless it differs from the old one in
exactly the one setting, nothing is written.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.config.schema import Value

_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./+-]*")
_SPECIAL_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def with_value(text: str, section: str, key: str, value: Value | None, path: Path) -> str:
    """*text* with `section.key` set to *value*, or without it when *value* is None."""
    before = yaml_reader.parse(text, path)
    if not isinstance(before.get(section) or {}, dict):
        raise ConfigError(f"{section} in {path} must be a block of settings; correct it by hand.")
    new = _edited(text, section, key, value, path)
    refusal = ConfigError(
        f"Cannot edit {section}.{key} in {path} automatically (unsupported YAML layout). "
        "Please edit the file by hand."
    )
    try:
        after = yaml_reader.parse(new, path)
    except ConfigError as error:
        raise refusal from error
    if _changed(before, section, key, value) != _without_nulls(after):
        raise refusal
    return new


def _changed(
    data: dict[str, object], section: str, key: str, value: Value | None
) -> dict[str, object]:
    result = copy.deepcopy(data)
    block = result.get(section) or {}
    if isinstance(block, dict):
        block.pop(key, None)
        if value is not None:
            block[key] = list(value) if isinstance(value, tuple) else value
        result[section] = block
    return _without_nulls(result)


def _without_nulls(data: dict[str, object]) -> dict[str, object]:
    """An empty section and no section mean the same."""
    return {name: value for name, value in data.items() if value not in (None, {})}


def _edited(text: str, section: str, key: str, value: Value | None, path: Path) -> str:
    root = yaml_reader.compose(text, path) if text.strip() else None
    found = _child(root, section)
    if found is None:
        return text if value is None else _with_new_section(text, section, key, value)
    name, block = found
    if block.id == "scalar":
        line = _line_end(text, name.start_mark.index)
        return text if value is None else _insert_line(text, line, f"  {key}: {_written(value)}")
    if block.flow_style:
        return _in_flow(text, block, key, value)
    return _in_block(text, block, key, value)


def _in_block(text: str, block: Any, key: str, value: Value | None) -> str:
    entry = _child(block, key)
    if entry is None:
        if value is None:
            return text
        indent = " " * block.value[0][0].start_mark.column
        line = _line_end(text, _last_leaf(block))
        return _insert_line(text, line, f"{indent}{key}: {_written(value)}")
    if value is None:
        return _without_lines(text, entry[0].start_mark.index, _last_leaf(entry[1]))
    return _replaced(text, entry, value)


def _child(node: Any, name: str) -> tuple[Any, Any] | None:
    if node is None or node.id != "mapping":
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _with_new_section(text: str, section: str, key: str, value: Value) -> str:
    newline = _newline(text)
    gap = newline if text.strip() else ""
    if text and not text.endswith("\n"):
        gap += newline
    return f"{text}{gap}{section}:{newline}  {key}: {_written(value)}{newline}"


def _in_flow(text: str, block: Any, key: str, value: Value | None) -> str:
    """Write `{a: 1, b: 2}` again from the source of its pairs."""
    pairs = [
        text[name.start_mark.index : inner.end_mark.index]
        for name, inner in block.value
        if name.value != key
    ]
    if value is not None:
        pairs.append(f"{key}: {_written(value)}")
    start, end = block.start_mark.index, block.end_mark.index
    return f"{text[:start]}{{{', '.join(pairs)}}}{text[end:]}"


def _replaced(text: str, entry: tuple[Any, Any], value: Value) -> str:
    name, node = entry
    if isinstance(value, tuple) and node.id == "sequence" and not node.flow_style:
        edited = _in_block_list(text, node, value)
        if edited is not None:
            return edited
    colon = text.index(":", name.end_mark.index) + 1
    start, end = node.start_mark.index, _last_leaf(node)
    if start == end or "\n" in text[colon:start]:
        if start != end:
            text = _without_lines(text, start, end)
        return f"{text[:colon]} {_written(value)}{text[colon:]}"
    return f"{text[:start]}{_written(value)}{text[end:]}"


def _in_block_list(text: str, node: Any, names: tuple[str, ...]) -> str | None:
    """Remove and append lines of a list with one item per line; None if it is not one."""
    items = [(item.value, item) for item in node.value if item.id == "scalar"]
    lines = {item.start_mark.line for _, item in items}
    kept = [name for name, _ in items if name in names]
    if len(lines) != len(node.value) or not kept or names[: len(kept)] != tuple(kept):
        return None
    last = items[-1][1]
    start = text.rfind("\n", 0, last.start_mark.index) + 1
    bullet = text[start : last.start_mark.index]
    text_end = _line_end(text, last.end_mark.index)
    for name in reversed(names[len(kept) :]):
        text = _insert_line(text, text_end, f"{bullet}{_scalar(name)}")
    for name, item in reversed(items):
        if name not in names:
            text = _without_lines(text, item.start_mark.index, item.end_mark.index)
    return text


def _last_leaf(node: Any) -> int:
    """Where *node* really ends: a block's own end mark lies behind the comments after it."""
    if node.id == "scalar" or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _last_leaf(last[1] if node.id == "mapping" else last)


def _line_end(text: str, index: int) -> int:
    """The index behind the line break of the line that contains *index*."""
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


def _insert_line(text: str, index: int, line: str) -> str:
    newline = _newline(text)
    start = text[:index] if text[:index].endswith("\n") else text[:index] + newline
    return f"{start}{line}{newline}{text[index:]}"


def _without_lines(text: str, start: int, end: int) -> str:
    return text[: text.rfind("\n", 0, start) + 1] + text[_line_end(text, end) :]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    return _scalar(value) if isinstance(value, str) else repr(value)


def _scalar(text: str) -> str:
    """Quoted unless every YAML version reads the bare word as a text."""
    if _PLAIN_WORD.fullmatch(text) and text.lower() not in _SPECIAL_WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)
