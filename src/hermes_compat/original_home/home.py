"""The home of hermes-agent: where it is, its settings and its secrets. It is only read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import paths
from hermes_core.config import yaml_reader
from hermes_core.config.env_file import EnvFile
from hermes_core.errors import ConfigError, UsageError
from hermes_core.json_values import JsonObject, JsonValue, object_in

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER_NAME: Final = ".hermes"
CONFIG_NAME: Final = "config.yaml"
PROFILES_NAME: Final = "profiles"
MODEL_SECTION: Final = "model"
TRACES: Final = (
    CONFIG_NAME, ".env", "state.db", "cron/jobs.json", "pairing", "platforms/pairing",
    "sessions/sessions.json", "memories", "skills",
)  # fmt: skip


class OriginalHome:
    """A home of hermes-agent, or the folder of one of its profiles."""

    def __init__(self, path: Path, profile: str = "") -> None:
        self.path = path
        self.profile = profile
        self.problem = self.env_problem = ""
        self.config = self._read_config()
        self.env = self._read_env()

    @property
    def is_in_place(self) -> bool:
        """Whether it is the folder of Hermes, too."""
        return is_same(self.path, paths.hermes_home())

    def section(self, name: str) -> JsonObject:
        """A section of config.yaml; empty if it is missing."""
        return object_in(self.config, name)

    def profiles(self) -> list[OriginalHome]:
        """The homes of its profiles."""
        folder = self.path / PROFILES_NAME
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return [OriginalHome(path, path.name) for path in found if has_traces(path)]

    def _read_config(self) -> JsonObject:
        path = self.path / CONFIG_NAME
        try:
            text = yaml_reader.read_text(path)
            parsed = yaml_reader.parse(text, path) if text is not None else {}
        except ConfigError as error:
            self.problem = str(error)
            return {}
        return parsed  # type: ignore[return-value]  # YAML has the types of JSON, and dates

    def _read_env(self) -> Mapping[str, str]:
        try:
            return EnvFile(self.path / ".env").values()
        except (OSError, ConfigError) as error:
            self.env_problem = str(error)
            return {}


class JsonContent(NamedTuple):
    """The content of a JSON file; None with the problem if it cannot be read."""

    value: JsonValue
    problem: str = ""


def read_json(path: Path) -> JsonContent:
    """Read a JSON file; one that does not exist has no content and no problem."""
    try:
        return JsonContent(json.loads(path.read_text(encoding="utf-8-sig", errors="replace")))
    except FileNotFoundError:
        return JsonContent(None)
    except OSError as error:
        return JsonContent(None, f"{path} cannot be read: {error.strerror}")
    except ValueError as error:
        return JsonContent(None, f"{path} is damaged: {error}")
    except RecursionError:
        return JsonContent(None, f"{path} is damaged: it is nested too deeply")


def is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to the same folder."""
    return path.resolve() == other.resolve()


def has_traces(path: Path) -> bool:
    """Whether a folder has something that can be taken over."""
    return path.is_dir() and any((path / name).exists() for name in TRACES)


def find_home(path: Path | None) -> OriginalHome:
    """The home in a folder, by default in that of Hermes, then in `~/.hermes`.

    A folder that contains `.hermes` is meant as a home folder of another machine.
    """
    if path is not None:
        folder = path.expanduser().absolute()
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder.")
        candidates = [folder / FOLDER_NAME, folder]
    else:
        candidates = [paths.hermes_home(), Path.home() / FOLDER_NAME]
    for candidate in candidates:
        if has_traces(candidate):
            return OriginalHome(candidate)
    raise UsageError(
        f"No home of hermes-agent in {candidates[-1]}. "
        "Give its folder: hermes import hermes-agent /path/to/.hermes"
    )


def offered_home() -> OriginalHome | None:
    """A home with a model in the settings of hermes-agent, if there is one on this machine."""
    for folder in (paths.hermes_home(), Path.home() / FOLDER_NAME):
        home = OriginalHome(folder) if (folder / CONFIG_NAME).is_file() else None
        if home is not None and home.config.get(MODEL_SECTION):
            return home
    return None
