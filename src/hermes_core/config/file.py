"""The user's settings: read from the environment, config.yaml and .env, and written back.

A value comes from the first of: its environment variable, config.yaml (secrets: .env), the
default. Unknown keys are kept and only reported, because configurations of hermes-agent
contain many of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes_core import paths
from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.config import price_entries, values, yaml_reader
from hermes_core.config.env_file import EnvFile
from hermes_core.config.settings import BLOCKS, SETTINGS
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes_core.config.schema import Setting, Value
    from hermes_core.json_values import JsonObject

Source = Literal["environment", "config.yaml", ".env", "default"]


class SettingEntry(NamedTuple):
    """The effective value of a setting; for a secret only 'set' or 'not set'."""

    name: str
    value: Value
    source: Source

    @property
    def text(self) -> str:
        """The value in the syntax of `hermes config set`."""
        return values.format_value(self.value)


class ConfigProblem(NamedTuple):
    """A problem in the configuration."""

    name: str
    message: str
    is_error: bool


class Settings:
    """A read-only, typed view of the effective settings.

    A value is validated when it is read, so an invalid setting affects only the code that
    needs it. Reading a setting with the wrong type is a programming error and raises
    TypeError.
    """

    def __init__(self, config: ConfigFile) -> None:
        self._config = config

    def value(self, name: str) -> Value:
        """The value, of any type."""
        return self._config.get(name)

    def get_bool(self, name: str) -> bool:
        """The value of a boolean setting."""
        value = self.value(name)
        if not isinstance(value, bool):
            raise TypeError(f"{name} is not a bool setting.")
        return value

    def get_int(self, name: str) -> int:
        """The value of an integer setting."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not an int setting.")
        return value

    def get_float(self, name: str) -> float:
        """The value of a number setting."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is not a number setting.")
        return float(value)

    def get_str(self, name: str) -> str:
        """The value of a text or choice setting."""
        value = self.value(name)
        if not isinstance(value, str):
            raise TypeError(f"{name} is not a text setting.")
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        """The value of a list setting."""
        value = self.value(name)
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is not a list setting.")
        return value

    def get_secret(self, name: str) -> str | None:
        """The secret itself, which must not be shown; None if it is not set."""
        return self._config.secret(name)

    def get_variable(self, name: str) -> str:
        """The variable with this name, of the environment or .env; empty without one."""
        return self._config.variable(name)


class ConfigFile:
    """config.yaml and .env, which may be missing. Files are read once per object."""

    def __init__(
        self,
        path: Path,
        env_path: Path,
        table: Sequence[Setting] = SETTINGS,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.path = path
        self.table = table
        self._env_file = EnvFile(env_path)
        self._environ = environ
        self._document: dict[str, object] | None = None
        self._secrets: dict[str, str] | None = None

    @classmethod
    def of_home(cls) -> ConfigFile:
        """The configuration in the user's home."""
        return cls(paths.config_path(), paths.env_path())

    def settings(self) -> Settings:
        """The typed view of the settings."""
        return Settings(self)

    def get(self, name: str) -> Value:
        """The effective value; for a secret, whether it is set."""
        return self.entry(name).value

    def entry(self, name: str) -> SettingEntry:
        """The effective value and its source."""
        setting = values.find_setting(self.table, name)
        if setting.secret:
            return self.secret_entry(setting)
        variable_text = self._environ.get(setting.variable)
        if variable_text:
            where = f"the environment variable {setting.variable}"
            return SettingEntry(
                name, values.parse_value(setting, variable_text, where), "environment"
            )
        raw = self._in_file(setting)
        if raw is None:
            return SettingEntry(name, setting.default, "default")
        return SettingEntry(name, values.parse_value(setting, raw, str(self.path)), "config.yaml")

    def entries(self) -> list[SettingEntry]:
        """All settings, in the order of the table."""
        return [self.entry(setting.name) for setting in self.table]

    def secret(self, name: str) -> str | None:
        """The value of a secret, or None."""
        setting = values.find_setting(self.table, name)
        if not setting.secret:
            raise TypeError(f"{name} is not a secret.")
        return self.variable(setting.variable) or None

    def variable(self, name: str) -> str:
        """The variable with this name, of the environment or .env; empty without one."""
        return self._environ.get(name) or self._read_secrets().get(name) or ""

    def block(self, name: str) -> dict[str, object]:
        """A section of BLOCKS as it is in the file; empty if it is missing."""
        section = self._read().get(name)
        if section is not None and not isinstance(section, dict):
            raise ConfigError(f"{name} in {self.path} must be a block of names.")
        return section or {}

    def sections(self) -> dict[str, object]:
        """All top-level sections of the file, known or not."""
        return dict(self._read())

    def variables(self) -> dict[str, str]:
        """Values for `${NAME}`: the environment, then .env."""
        return {**self._read_secrets(), **self._environ}

    def set(self, name: str, text: str) -> Value:
        """Write a value given as text; returns the parsed value."""
        setting = values.find_setting(self.table, name)
        if setting.secret:
            self.set_variable(setting.variable, text)
            return self.get(name)
        value = values.parse_value(setting, text)
        self._edit(setting, value)
        return value

    def unset(self, name: str) -> bool:
        """Remove a value, so that the default applies; whether it was set."""
        setting = values.find_setting(self.table, name)
        if setting.secret:
            self._secrets = None
            return self._env_file.unset(setting.variable)
        if self._in_file(setting) is None:
            return False
        self._edit(setting, None)
        return True

    def add_block(self, name: str, block: Mapping[str, object]) -> None:
        """Add a section of BLOCKS that the file does not have."""
        from hermes_core.config import yaml_edit  # noqa: PLC0415 - only a change needs it

        with folder_locked(self.path.parent):
            text = yaml_reader.read_text(self.path) or ""
            write_atomically(self.path, yaml_edit.with_block(text, name, block, self.path))
        self._document = None

    def set_entry(self, section: str, name: str, fields: JsonObject | None) -> None:
        """Add an entry to a section of BLOCKS, or remove it if *fields* is None."""
        from hermes_core.config import yaml_edit  # noqa: PLC0415 - only a change needs it

        with folder_locked(self.path.parent):
            text = yaml_reader.read_text(self.path) or ""
            new = yaml_edit.with_value(text, section, name, fields, self.path)
            write_atomically(self.path, new)
        self._document = None

    def set_option(self, section: str, name: str, key: str, value: Value | None) -> None:
        """Set a key of an entry of a section of BLOCKS, or remove it if *value* is None."""
        from hermes_core.config import yaml_edit  # noqa: PLC0415 - only a change needs it

        with folder_locked(self.path.parent):
            text = yaml_reader.read_text(self.path) or ""
            new = yaml_edit.with_option(text, (section, name, key), value, self.path)
            write_atomically(self.path, new)
        self._document = None

    def set_nested(self, names: tuple[str, ...], fields: JsonObject | None) -> None:
        """Set the mapping at a path of names, or remove it if *fields* is None."""
        from hermes_core.config import yaml_edit  # noqa: PLC0415 - only a change needs it

        with folder_locked(self.path.parent):
            text = yaml_reader.read_text(self.path) or ""
            write_atomically(self.path, yaml_edit.with_nested(text, names, fields, self.path))
        self._document = None

    def set_variable(self, name: str, value: str | None) -> None:
        """Set a variable in .env, or remove it if *value* is None."""
        self._secrets = None
        if value is None:
            self._env_file.unset(name)
        else:
            self._env_file.set(name, value)

    def variable_entry(self, setting: Setting) -> SettingEntry:
        """The value of a setting that is a variable and no secret."""
        if text := self._environ.get(setting.variable):
            return SettingEntry(setting.name, text, "environment")
        if text := self._read_secrets().get(setting.variable):
            return SettingEntry(setting.name, text, ".env")
        return SettingEntry(setting.name, setting.default, "default")

    def check(self) -> list[ConfigProblem]:
        """All invalid or ineffective entries; problems are returned, not raised."""
        try:
            document = self._read()
        except ConfigError as error:
            return [ConfigProblem(self.path.name, str(error), True)]
        return [
            *self._bad_values(),
            *self._unknown_keys(document),
            *self._bad_prices(document),
            *self._unknown_variables(),
            *self._open_files(),
        ]

    def secret_entry(self, setting: Setting) -> SettingEntry:
        """Whether a secret is set, and where."""
        if self._environ.get(setting.variable):
            return SettingEntry(setting.name, "set", "environment")
        if self._read_secrets().get(setting.variable):
            return SettingEntry(setting.name, "set", ".env")
        return SettingEntry(setting.name, "not set", "default")

    def _read_secrets(self) -> dict[str, str]:
        if self._secrets is None:
            self._secrets = self._env_file.values()
        return self._secrets

    def _read(self) -> dict[str, object]:
        if self._document is None:
            self._document = yaml_reader.load(self.path)
        return self._document

    def _in_file(self, setting: Setting) -> object:
        block = self._read().get(setting.section)
        if block and not isinstance(block, dict):
            raise ConfigError(f"{setting.section} in {self.path} must be a block of settings.")
        return block.get(setting.key) if isinstance(block, dict) else None

    def _edit(self, setting: Setting, value: Value | None) -> None:
        from hermes_core.config import yaml_edit  # noqa: PLC0415 - only a change needs it

        with folder_locked(self.path.parent):
            text = yaml_reader.read_text(self.path) or ""
            new = yaml_edit.with_value(text, setting.section, setting.key, value, self.path)
            write_atomically(self.path, new)
        self._document = None

    def _bad_values(self) -> Iterator[ConfigProblem]:
        for setting in self.table:
            block = self._read().get(setting.section)
            if block is not None and not isinstance(block, dict):
                continue  # the section is reported as a whole
            try:
                self.entry(setting.name)
            except ConfigError as error:
                yield ConfigProblem(setting.name, str(error), True)

    def _unknown_keys(self, document: dict[str, object]) -> Iterator[ConfigProblem]:
        sections = {setting.section for setting in self.table}
        names = {setting.name for setting in self.table}
        for section, block in document.items():
            if section in BLOCKS and (block is None or isinstance(block, dict)):
                continue
            if section not in sections | set(BLOCKS):
                hint = values.did_you_mean(section, sections)
                yield ConfigProblem(section, f"unknown setting: {section}.{hint}", False)
            elif isinstance(block, dict):
                for key in block:
                    name = f"{section}.{key}"
                    if name not in names:
                        hint = values.did_you_mean(name, names)
                        yield ConfigProblem(name, f"unknown setting: {name}.{hint}", False)
            elif block is not None:
                message = f"{section} in {self.path} must be a block of settings."
                yield ConfigProblem(section, message, True)

    def _bad_prices(self, document: dict[str, object]) -> Iterator[ConfigProblem]:
        prices = document.get(price_entries.SECTION)
        for model, fields in prices.items() if isinstance(prices, dict) else ():
            name = f"{price_entries.SECTION}.{model}"
            if problem := price_entries.problem_of(fields):
                message = f"{name} in {self.path}: {problem}. The price is not used."
                yield ConfigProblem(name, message, True)
            for key in price_entries.unknown_keys(fields):
                yield ConfigProblem(name, f"{name} in {self.path}: unknown key {key!r}.", False)

    def _unknown_variables(self) -> Iterator[ConfigProblem]:
        known = {setting.variable for setting in self.table}
        starts = tuple(f"HERMES_{setting.section.upper()}_" for setting in self.table)
        for variable in self._environ:
            if variable.startswith(starts) and variable not in known:
                hint = values.did_you_mean(variable, known)
                message = f"The environment variable {variable} sets nothing.{hint}"
                yield ConfigProblem(variable, message, False)

    def _open_files(self) -> Iterator[ConfigProblem]:
        for path, mode in ((self.path.parent, 700), (self.path, 600), (self._env_file.path, 600)):
            if path.exists() and path.stat().st_mode & 0o077:
                message = f"{path} can be read by other users; run: chmod {mode} {path}"
                yield ConfigProblem(path.name, message, path == self._env_file.path)
