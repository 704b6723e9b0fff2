"""Reads config.yaml, with errors that name the position and the next step.

The YAML library is loaded only when there is something to parse, because most
installations have no config.yaml.
"""

from __future__ import annotations

import copy
import functools
import itertools
import os
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import ConfigError
from hermes_core.paths import config_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ruamel.yaml import YAML


def is_set(*names: str) -> bool:
    """Whether the environment or config.yaml has one of these settings or sections.

    True if config.yaml cannot be read: reading the setting reports the error.
    """
    if any(os.environ.get(f"HERMES_{name.replace('.', '_').upper()}") for name in names):
        return True
    try:
        return any(has(config_path(), *name.split(".", 1)) for name in names)
    except ConfigError:
        return True


MAX_VALUES: Final = 100_000
_ADVICE = "Correct the line, or move the file away to start with the defaults."


def read_text(path: Path) -> str | None:
    """The text of the file with its line endings; None if it does not exist."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text; save it as UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error


def parse(text: str, path: Path) -> dict[str, object]:
    """The sections of the file as plain dicts and lists."""
    if not text.strip():
        return {}
    data = _run_parser(lambda yaml: yaml.load(text), path)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must consist of `section:` blocks; it is something else.")
    counter = itertools.count(1)
    return {str(name): _plain(value, counter, path) for name, value in data.items()}


def load(path: Path) -> dict[str, object]:
    """The sections of a file; it is parsed again only after a change."""
    return copy.deepcopy(_current(path))


def has(path: Path, section: str, key: str = "") -> bool:
    """Whether a file has a section, or a key in it; True for a section that is not a block."""
    block = _current(path).get(section)
    return key in block if key and isinstance(block, dict) else block is not None


def _current(path: Path) -> dict[str, object]:
    try:
        status = path.stat()
    except OSError:
        text = read_text(path)  # raises if the file exists and cannot be read
        return {} if text is None else parse(text, path)
    return _load(path, status.st_mtime_ns, status.st_size, status.st_ino)


@functools.lru_cache(maxsize=8)
def _load(path: Path, *_version: int) -> dict[str, object]:
    text = read_text(path)
    return {} if text is None else parse(text, path)


def compose(text: str, path: Path) -> Any:
    """The node tree, with positions in *text*; None for an empty text."""
    return _run_parser(lambda yaml: yaml.compose(text), path)


def _run_parser(read: Any, path: Path) -> Any:
    from ruamel.yaml import YAML  # noqa: PLC0415 - costs 20 ms, and only a file needs it
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415 - as above

    yaml: YAML = YAML()
    try:
        return read(yaml)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = str(error.problem or error.context or "it cannot be parsed").strip()
        raise ConfigError(f"{path} is not valid YAML{position}: {reason}. {_ADVICE}") from error
    except (YAMLError, ValueError, RecursionError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "too deep"
        raise ConfigError(f"{path} is not valid YAML: {reason}. {_ADVICE}") from error


def _plain(value: object, counter: Iterator[int], path: Path) -> object:
    """A copy of plain dicts and lists; aliases are copied too, up to a limit."""
    if next(counter) > MAX_VALUES:
        raise ConfigError(f"{path} has too many values, or aliases of aliases. {_ADVICE}")
    if isinstance(value, dict):
        return {str(name): _plain(inner, counter, path) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, counter, path) for inner in value]
    return value
