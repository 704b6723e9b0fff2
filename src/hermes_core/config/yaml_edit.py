"""Changes one setting or entry in the text of config.yaml without touching any other byte.

The YAML library would reformat the file and drop comments after a replaced list.
Therefore the parser only provides positions, the text is edited there, and the result is
parsed again: unless it differs from the old one in exactly this setting, nothing is
written.
"""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_core.config import yaml_reader
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeAlias

    from hermes_core.config.schema import Value
    from hermes_core.json_values import JsonObject, JsonValue

    Entry: TypeAlias = Value | JsonObject

_PLAIN_SCALAR = re.compile(r"[A-Za-z][A-Za-z0-9_./+-]*")
_RESERVED_SCALARS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def with_value(text: str, section: str, key: str, value: Entry | None, path: Path) -> str:
    """*text* with `section.key` set to *value*, or without it when *value* is None.

    A mapping can be added and removed, but does not replace another one.
    """
    before = yaml_reader.parse(text, path)
    if not isinstance(before.get(section) or {}, dict):
        raise ConfigError(f"{section} in {path} must be a block of settings; fix it by hand.")
    new = _edit_text(text, section, key, value, path)
    edit_error = ConfigError(
        f"Cannot edit {section}.{key} in {path} automatically (unsupported YAML layout). "
        "Please edit the file by hand."
    )
    try:
        after = yaml_reader.parse(new, path)
    except ConfigError as error:
        raise edit_error from error
    if _expected_document(before, section, key, value) != _drop_empty(after):
        raise edit_error
    return new


def with_option(text: str, names: tuple[str, str, str], value: Value | None, path: Path) -> str:
    """*text* with `section.name.key` set to *value*, or without it when *value* is None."""
    section, name, key = names
    before = yaml_reader.parse(text, path)
    block = before.get(section)
    entry = block.get(name) if isinstance(block, dict) else None
    if not entry:
        return text if value is None else with_value(text, section, name, _fields(key, value), path)
    edit_error = ConfigError(
        f"Cannot edit {'.'.join(names)} in {path} automatically (unsupported YAML layout). "
        "Please edit the file by hand."
    )
    node = _child(_child_node(yaml_reader.compose(text, path), section), name)
    if node is None or node[1].id != "mapping" or not isinstance(entry, dict):
        raise edit_error
    if node[1].flow_style:
        new = _edit_flow(text, node[1], key, None if value is None else _format_value(value))
    elif value is None and set(entry) == {key}:
        new = _edit_text(text, section, name, None, path)
    else:
        new = _edit_block(text, node[1], key, value)
    expected = copy.deepcopy(before)
    changed = {each: item for each, item in entry.items() if each != key}
    if value is not None:
        changed |= _fields(key, value)
    expected[section] = _drop_empty({**block, name: changed} if isinstance(block, dict) else {})
    try:
        after = yaml_reader.parse(new, path)
    except ConfigError as error:
        raise edit_error from error
    shown = after.get(section)
    after[section] = _drop_empty(shown) if isinstance(shown, dict) else {}
    if _drop_empty(expected) != _drop_empty(after):
        raise edit_error
    return new


def with_nested(text: str, names: tuple[str, ...], value: JsonObject | None, path: Path) -> str:
    """*text* with the mapping at *names* set, or removed when *value* is None.

    Blocks that become empty are removed, too.
    """
    edit_error = ConfigError(
        f"Cannot edit {'.'.join(names)} in {path} automatically (unsupported YAML layout). "
        "Please edit the file by hand."
    )
    before = yaml_reader.parse(text, path)
    expected = _without_empty(_with_value_at(before, names, value))
    if expected == _without_empty(before):
        return text
    new = _edit_nested(text, names, value, path)
    try:
        after = yaml_reader.parse(new, path)
    except ConfigError as error:
        raise edit_error from error
    if _without_empty(after) != expected:
        raise edit_error
    return new


def _edit_nested(text: str, names: tuple[str, ...], value: JsonObject | None, path: Path) -> str:
    *above, key = names
    if len(above) == 1:
        return _edit_text(text, above[0], key, value, path)
    node = yaml_reader.compose(text, path) if text.strip() else None
    for name in above:
        node = _child_node(node, name)
    if node is None or node.id != "mapping" or not node.value:
        wrapped: JsonObject | None = None if value is None else {key: value}
        return _edit_nested(text, tuple(above), wrapped, path)
    if value is None and len(node.value) == 1:
        return _edit_nested(text, tuple(above), None, path)
    if node.flow_style:
        return _edit_flow(text, node, key, None if value is None else _format_value(value))
    entry = _child(node, key)
    if entry is None or value is None:
        return _edit_block(text, node, key, value)
    start, indent = entry[0].start_mark.index, " " * node.value[0][0].start_mark.column
    line = text.rfind("\n", 0, start) + 1
    rest = _remove_lines(text, start, _content_end(entry[1]))
    return _insert_line(rest, line, _entry_lines(text, indent, key, value))


def _with_value_at(
    data: Mapping[str, object], names: tuple[str, ...], value: object
) -> dict[str, object]:
    name, *rest = names
    inner = data.get(name)
    if rest:
        value = _with_value_at(inner if isinstance(inner, Mapping) else {}, tuple(rest), value)
    return {**data, name: value}


def _without_empty(data: Mapping[str, object]) -> dict[str, object]:
    """The data without values and mappings that are empty, at any depth."""
    cleaned = {
        name: _without_empty(value) if isinstance(value, Mapping) else value
        for name, value in data.items()
    }
    return _drop_empty(cleaned)


def _fields(key: str, value: Value) -> JsonObject:
    return {key: list(value) if isinstance(value, tuple) else value}


def _child_node(root: Any, name: str) -> Any:
    found = _child(root, name)
    return None if found is None else found[1]


def with_block(text: str, section: str, block: Mapping[str, object], path: Path) -> str:
    """*text* with a section at its end; ConfigError if it has the section already."""
    if yaml_reader.parse(text, path).get(section):
        raise ConfigError(f"{section} in {path} already exists; fix it by hand.")
    from ruamel.yaml import YAML  # noqa: PLC0415 - costs 20 ms

    yaml: YAML = YAML()
    stream = io.StringIO()
    yaml.dump({section: dict(block)}, stream)
    gap = "" if not text or text.endswith("\n") else _newline(text)
    added = stream.getvalue().rstrip("\n").replace("\n", _newline(text)) + _newline(text)
    new = f"{text}{gap}{_newline(text) if text.strip() else ''}{added}"
    if yaml_reader.parse(new, path).get(section) != block:
        raise ConfigError(f"{section} cannot be added to {path} automatically; add it by hand.")
    return new


def _expected_document(
    data: dict[str, object], section: str, key: str, value: Entry | None
) -> dict[str, object]:
    result = copy.deepcopy(data)
    block = result.get(section) or {}
    if isinstance(block, dict):
        block.pop(key, None)
        if value is not None:
            block[key] = list(value) if isinstance(value, tuple) else value
        result[section] = block
    return _drop_empty(result)


def _drop_empty(data: dict[str, object]) -> dict[str, object]:
    """Remove empty sections, which are equivalent to missing ones."""
    return {name: value for name, value in data.items() if value not in (None, {})}


def _edit_text(text: str, section: str, key: str, value: Entry | None, path: Path) -> str:
    root = yaml_reader.compose(text, path) if text.strip() else None
    child = _child(root, section)
    if root is not None and root.flow_style and (child is None or child[1].id == "scalar"):
        block = None if value is None else f"{{{_format_scalar(key)}: {_format_value(value)}}}"
        return _edit_flow(text, root, section, block)
    if child is None:
        return text if value is None else _append_section(text, section, key, value)
    name, block = child
    if block.id == "scalar":
        line = _line_end(text, name.start_mark.index)
        return (
            text
            if value is None
            else _insert_line(text, line, _entry_lines(text, "  ", key, value))
        )
    if block.flow_style:
        return _edit_flow(text, block, key, None if value is None else _format_value(value))
    return _edit_block(text, block, key, value)


def _edit_block(text: str, block: Any, key: str, value: Entry | None) -> str:
    entry = _child(block, key)
    if entry is None:
        if value is None:
            return text
        indent = " " * block.value[0][0].start_mark.column
        line = _line_end(text, _content_end(block))
        return _insert_line(text, line, _entry_lines(text, indent, key, value))
    if value is None:
        return _remove_lines(text, entry[0].start_mark.index, _content_end(entry[1]))
    return _replace_value(text, entry, value)


def _child(node: Any, name: str) -> tuple[Any, Any] | None:
    if node is None or node.id != "mapping":
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _append_section(text: str, section: str, key: str, value: Entry) -> str:
    newline = _newline(text)
    gap = newline if text.strip() else ""
    if text and not text.endswith("\n"):
        gap += newline
    return f"{text}{gap}{section}:{newline}{_entry_lines(text, '  ', key, value)}{newline}"


def _entry_lines(text: str, indent: str, key: str, value: Entry) -> str:
    """A setting on one line, or a mapping with a line for each of its fields."""
    name = _format_scalar(key)
    if not isinstance(value, Mapping) or not value:
        return f"{indent}{name}: {_format_value(value)}"
    fields = (f"{indent}  {_format_scalar(k)}: {_format_value(v)}" for k, v in value.items())
    return _newline(text).join([f"{indent}{name}:", *fields])


def _edit_flow(text: str, block: Any, key: str, value: str | None) -> str:
    """Rebuild `{a: 1, b: 2}` from the source text of its pairs; *value* is YAML."""
    pairs = [
        text[name.start_mark.index : inner.end_mark.index]
        for name, inner in block.value
        if name.value != key
    ]
    if value is not None:
        pairs.append(f"{_format_scalar(key)}: {value}")
    start, end = block.start_mark.index, block.end_mark.index
    return f"{text[:start]}{{{', '.join(pairs)}}}{text[end:]}"


def _replace_value(text: str, entry: tuple[Any, Any], value: Entry) -> str:
    name, node = entry
    if isinstance(value, tuple) and node.id == "sequence" and not node.flow_style:
        edited = _edit_block_list(text, node, value)
        if edited is not None:
            return edited
    colon = text.index(":", name.end_mark.index) + 1
    start, end = node.start_mark.index, _content_end(node)
    if start == end or "\n" in text[colon:start]:
        if start != end:
            text = _remove_lines(text, start, end)
        return f"{text[:colon]} {_format_value(value)}{text[colon:]}"
    return f"{text[:start]}{_format_value(value)}{text[end:]}"


def _edit_block_list(text: str, node: Any, names: tuple[str, ...]) -> str | None:
    """Remove and append lines of a list with one item per line; None for other lists."""
    items = [(item.value, item) for item in node.value if item.id == "scalar"]
    lines = {item.start_mark.line for _, item in items}
    matches = [name for name, _ in items if name in names]
    if len(lines) != len(node.value) or not matches or names[: len(matches)] != tuple(matches):
        return None
    last = items[-1][1]
    start = text.rfind("\n", 0, last.start_mark.index) + 1
    bullet = text[start : last.start_mark.index]
    text_end = _line_end(text, last.end_mark.index)
    for name in reversed(names[len(matches) :]):
        text = _insert_line(text, text_end, f"{bullet}{_format_scalar(name)}")
    for name, item in reversed(items):
        if name not in names:
            text = _remove_lines(text, item.start_mark.index, item.end_mark.index)
    return text


def _content_end(node: Any) -> int:
    """The end of a node's content; the end mark of a block is after its trailing comments."""
    if node.id == "scalar" or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _content_end(last[1] if node.id == "mapping" else last)


def _line_end(text: str, index: int) -> int:
    """The index after the line break of the line that contains *index*."""
    newline = text.find("\n", index)
    return len(text) if newline < 0 else newline + 1


def _insert_line(text: str, index: int, line: str) -> str:
    newline = _newline(text)
    start = text[:index] if text[:index].endswith("\n") else text[:index] + newline
    return f"{start}{line}{newline}{text[index:]}"


def _remove_lines(text: str, start: int, end: int) -> str:
    return text[: text.rfind("\n", 0, start) + 1] + text[_line_end(text, end) :]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _format_value(value: Entry | JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        pairs = (f"{_format_scalar(k)}: {_format_value(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    return _format_scalar(value) if isinstance(value, str) else repr(value)


def _format_scalar(text: str) -> str:
    """*text* quoted, unless every YAML version reads it as a string without quotes."""
    if _PLAIN_SCALAR.fullmatch(text) and text.lower() not in _RESERVED_SCALARS:
        return text
    return json.dumps(text, ensure_ascii=False)
