"""Which model answers: from the settings, from keys that are there, or from this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_agent.providers.base import Provider
    from hermes_core.config_file import Settings

OPENAI: Final = "https://api.openai.com/v1"
OPENROUTER: Final = "https://openrouter.ai/api/v1"
WINDOW: Final = 128_000


class LocalServer(NamedTuple):
    """A program that serves models on this machine."""

    name: str
    base_url: str


LOCAL_SERVERS: Final = (
    LocalServer("Ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("llama-server", "http://127.0.0.1:8080/v1"),
    LocalServer("LM Studio", "http://127.0.0.1:1234/v1"),
)


class Choice(NamedTuple):
    """A model and how it is reached; `key` is never shown."""

    api: str
    model: str
    base_url: str = ""
    key: str = ""
    window: int = 0

    def provider(self) -> Provider:
        """The provider for it."""
        if self.api == "anthropic":
            from hermes_agent.providers.anthropic import (  # noqa: PLC0415 - one of several
                BASE_URL,
                Anthropic,
            )

            return Anthropic(
                self.model, self.key, self.base_url or BASE_URL, window=self.window or 200_000
            )
        if self.api == "script":
            from hermes_agent.providers.script import (  # noqa: PLC0415 - one of several
                Script,
                ScriptedProvider,
            )

            return ScriptedProvider(Script.load(Path(self.model)), window=self.window or WINDOW)
        from hermes_agent.providers.openai_compatible import (  # noqa: PLC0415 - one of several
            OpenAICompatible,
        )

        return OpenAICompatible(
            self.model, self.base_url or OPENAI, self.key, window=self.window or WINDOW
        )


def chosen(settings: Settings) -> Choice | None:
    """What the settings say; None when nothing was chosen."""
    model = settings.get_str("llm.model")
    if not model:
        return None
    api = settings.get_str("llm.api")
    base_url = settings.get_str("llm.base_url")
    return Choice(
        api,
        model,
        base_url,
        key_for(settings, api, base_url),
        settings.get_int("llm.window"),
    )


def key_for(settings: Settings, api: str, base_url: str) -> str:
    """The key for an address: the one set for the model, else the provider's own."""
    own = settings.get_secret("llm.key")
    if own:
        return own
    if api == "anthropic":
        return settings.get_secret("keys.anthropic") or ""
    if "openrouter.ai" in base_url:
        return settings.get_secret("keys.openrouter") or ""
    if not base_url or "api.openai.com" in base_url:
        return settings.get_secret("keys.openai") or ""
    return ""


def named(settings: Settings, name: str, current: Choice | None) -> Choice:
    """Another model by name: `anthropic:NAME`, `openrouter:NAME`, `URL#NAME`, or plain."""
    prefix, separator, rest = name.partition(":")
    if name.startswith(("http://", "https://")):
        base_url, _, model = name.partition("#")
        if not model:
            raise ConfigError(f"{name} names no model; write {name}#MODEL")
        return Choice("openai", model, base_url, key_for(settings, "openai", base_url))
    known: Mapping[str, tuple[str, str]] = {
        "anthropic": ("anthropic", ""),
        "openai": ("openai", OPENAI),
        "openrouter": ("openai", OPENROUTER),
        "script": ("script", ""),
    }
    if separator and prefix in known:
        api, base_url = known[prefix]
        return Choice(api, rest, base_url, key_for(settings, api, base_url))
    if current is None:
        raise ConfigError(
            f"there is no provider for {name!r} yet; name one, for example anthropic:{name}, "
            "or run `hermes setup`"
        )
    return current._replace(model=name)


def found_here() -> Choice | None:
    """A model that a program on this machine serves; the first one it lists."""
    import httpx2  # noqa: PLC0415 - only when nothing was chosen

    for server in LOCAL_SERVERS:
        try:
            answer = httpx2.get(f"{server.base_url}/models", timeout=0.5)
            models = [one["id"] for one in answer.json()["data"]]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            continue
        if models:
            return Choice("openai", models[0], server.base_url)
    return None
