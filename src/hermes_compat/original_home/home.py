"""The home of hermes-agent: where it is, its settings and its secrets. It is only read."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hermes_core import paths
from hermes_core.config import yaml_reader
from hermes_core.config.env_file import EnvFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError, UsageError
from hermes_core.isolate import Failure, attempt
from hermes_core.json_values import JsonObject, JsonValue, object_in, text_in
from hermes_state.imports.rows import StoredUnit, UnitState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hermes_core.config.file import ConfigFile
    from hermes_state.store import SessionDB


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


MARKS_NAME: Final = "hermes-agent home"
TAKEN_BEFORE: Final = "already imported"


class ItemState(StrEnum):
    """What happens to an item."""

    TAKE = "take"
    HERE = "here"  # taken before, or used where it is
    SKIP = "not taken"
    TAKEN = "taken"
    FAILED = "failed"


class MoveItem(NamedTuple):
    """A thing in the home of hermes-agent, and what happens to it.

    `apply` takes it over and may be repeated; it may return what was done in words. An item with
    a *mark* is taken once, also if it is deleted here afterwards.
    """

    kind: str
    name: str
    state: ItemState
    detail: str = ""
    apply: Callable[[], str | None] | None = None
    mark: str = ""


class TakenMarks:
    """What earlier runs have taken over."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._known = set(db.imports.units(MARKS_NAME))

    def __contains__(self, mark: object) -> bool:
        return mark in self._known

    def add(self, mark: str) -> None:
        """Remember that something was taken over."""
        self._db.imports.store(MARKS_NAME, [], [StoredUnit(mark, UnitState("taken"))])
        self._known.add(mark)


class MoveContext(NamedTuple):
    """The home of hermes-agent, and where things are taken to."""

    home: OriginalHome
    db: SessionDB
    config: ConfigFile
    marks: TakenMarks
    is_plan: bool = False  # nothing is taken over

    def once(self, item: MoveItem) -> MoveItem:
        """*item*, unless it was taken over before."""
        if item.mark in self.marks:
            return item._replace(state=ItemState.HERE, detail=TAKEN_BEFORE)
        return item


class Mover(Protocol):
    """Plans one kind of thing."""

    def __call__(self, context: MoveContext) -> Iterable[MoveItem]:
        """The items of this kind."""
        ...


def plan(context: MoveContext, movers: Iterable[Mover]) -> list[MoveItem]:
    """Everything that was found, in the order in which it is taken over."""
    return [item for mover in movers for item in mover(context)]


def carry_out(
    context: MoveContext,
    movers: Iterable[Mover],
    on_item: Callable[[MoveItem], object] = lambda _item: None,
) -> Iterator[MoveItem]:
    """Take everything over, one mover after the other; what fails is reported."""
    for mover in movers:
        for item in mover(context):
            if item.state is ItemState.TAKE and item.apply is not None:
                on_item(item)
                yield _apply(context, item)
            else:
                yield item


def _apply(context: MoveContext, item: MoveItem) -> MoveItem:
    def run() -> str:
        detail = (item.apply() if item.apply is not None else "") or item.detail
        if item.mark:
            context.marks.add(item.mark)
        return detail

    result = attempt(f"take {item.kind} {item.name}", run)
    if isinstance(result, Failure):
        return item._replace(state=ItemState.FAILED, detail=str(result.error))
    return item._replace(state=ItemState.TAKEN, detail=result)


KIND: Final = "key"
OTHER_VARIABLES: Final = ("MATRIX_HOMESERVER",)  # read by the gateway, without a setting
TOKENS: Final = {
    "telegram": "TELEGRAM_BOT_TOKEN",
    "discord": "DISCORD_BOT_TOKEN",
    "slack": "SLACK_BOT_TOKEN",
    "matrix": "MATRIX_ACCESS_TOKEN",
}
OWN_SECRETS: Final = frozenset({"store.password"})
ACCESS_SUFFIXES: Final = ("_ALLOWED_USERS", "_ALLOWED_CHATS", "_ALLOW_ALL_USERS", "_ALLOW_BOTS")


def known_variables() -> tuple[str, ...]:
    """The variables with a secret that have a meaning here."""
    secrets = (item for item in SETTINGS if item.secret and item.name not in OWN_SECRETS)
    return (*(item.variable for item in secrets), *OTHER_VARIABLES)


def plan_secrets(context: MoveContext) -> Iterator[MoveItem]:
    """The keys of `.env`, and tokens that config.yaml contains."""
    yield from _of_env(context)
    for platform, variable in TOKENS.items():
        block = object_in(context.home.section("platforms"), platform)
        token = text_in(block, "token").strip()
        if token and not context.home.env.get(variable):
            yield _item(context, variable, token)


def _of_env(context: MoveContext) -> Iterator[MoveItem]:
    env, known = context.home.env, known_variables()
    found = [name for name in known if env.get(name)]
    if context.home.is_in_place and found:
        yield MoveItem(KIND, ", ".join(found), ItemState.HERE, "read from .env as it is")
    elif not context.home.is_in_place:
        for name in found:
            yield _item(context, name, env[name])
    others = [
        name
        for name, value in env.items()
        if value and name not in known and not name.endswith(ACCESS_SUFFIXES)
    ]
    if others:
        yield MoveItem(KIND, ", ".join(others), ItemState.SKIP, "not used here")


def _item(context: MoveContext, variable: str, value: str) -> MoveItem:
    current = context.config.variables().get(variable)
    if current == value:
        return MoveItem(KIND, variable, ItemState.HERE, "set here")
    if current:
        reason = "another value is set here"
        return MoveItem(KIND, variable, ItemState.SKIP, reason)

    def save() -> None:
        paths.private_folder(paths.hermes_home())
        EnvFile(paths.env_path()).set(variable, value)

    return MoveItem(KIND, variable, ItemState.TAKE, "to .env", save)
