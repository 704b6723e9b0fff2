"""Model selection: from the settings, from available keys, or from local servers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from hermes_agent.local.built_in import MODEL_NAME as BUILT_IN
from hermes_agent.local.built_in import BuiltIn
from hermes_agent.providers.presets import (
    KEY_SETTINGS,
    OPENAI,
    OPENROUTER,
    PRESETS,
    PRESETS_BY_NAME,
)
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.presets import ProviderPreset
    from hermes_agent.providers.server_answers import ModelListAnswer
    from hermes_core.config.file import Settings

DEFAULT_EFFORT: Final = "default"
URL_SCHEMES: Final = ("http://", "https://")
DEFAULT_SCRIPT_WINDOW: Final = 128_000
CURRENT_FOLDER: Final = Path()
COST_OPTIONS: Final = {"usage": {"include": True}}  # makes OpenRouter report the cost of a response


class LocalServer(NamedTuple):
    """A model server on this machine."""

    name: str
    base_url: str


OLLAMA_PORT: Final = 11434
LOCAL_SERVERS: Final = (
    LocalServer("Ollama", f"http://127.0.0.1:{OLLAMA_PORT}/v1"),
    LocalServer("llama-server", "http://127.0.0.1:8080/v1"),
    LocalServer("LM Studio", "http://127.0.0.1:1234/v1"),
)


class ModelChoice(NamedTuple):
    """A model, its API and its endpoint; `key` is never displayed."""

    api: str
    model: str
    base_url: str = ""
    key: str = ""
    window: int = 0
    max_output: int = 0  # tokens of an answer; 0 uses the model's limit
    effort: str = ""  # of reasoning; empty uses the model's default

    def with_limits(self, max_output: int, effort: str) -> ModelChoice:
        """The choice with an output limit and an effort; `default` is the model's own."""
        chosen = "" if effort == DEFAULT_EFFORT else effort
        return self._replace(max_output=max_output, effort=chosen)

    def provider(self, folder: Path = CURRENT_FOLDER) -> Provider:
        """Create the provider; the path of a script is relative to *folder*."""
        if self.api == "anthropic":
            from hermes_agent.providers.anthropic import (  # noqa: PLC0415 - one of several
                BASE_URL,
                Anthropic,
            )

            return Anthropic(
                self.model,
                self.key,
                self.base_url or BASE_URL,
                window=self.window,
                max_output=self.max_output,
                effort=self.effort,
            )
        if self.api == "script":
            from hermes_agent.providers.scripted import ModelScript, ScriptedProvider  # noqa: PLC0415 - only for tests and demos

            return ScriptedProvider(
                ModelScript.load(folder / self.model), window=self.window or DEFAULT_SCRIPT_WINDOW
            )
        if self.api == "local":
            from hermes_agent.providers import built_in  # noqa: PLC0415 - one of several

            return built_in.LocalModel(window=self.window or built_in.WINDOW_TOKENS)
        from hermes_agent.providers.openai_compatible import (  # noqa: PLC0415 - one of several
            OpenAICompatible,
        )

        base_url = self.base_url or OPENAI
        extra = COST_OPTIONS if base_url.rstrip("/") == OPENROUTER else None
        return OpenAICompatible(
            self.model,
            base_url,
            self.key,
            window=self.window,
            max_output=self.max_output,
            effort=self.effort,
            extra=extra,
        )


def configured_model(settings: Settings) -> ModelChoice | None:
    """Return the model from the settings; None when none is configured."""
    model = settings.get_str("llm.model")
    if not model:
        return None
    api = settings.get_str("llm.api")
    base_url = settings.get_str("llm.base_url")
    return ModelChoice(
        api,
        model,
        base_url,
        key_for(settings, api, base_url),
        settings.get_int("llm.window"),
    )


class EnvironmentModel(NamedTuple):
    """A model that is used because its API key was found, and the variable of the key."""

    choice: ModelChoice
    variable: str
    title: str

    @property
    def notice(self) -> str:
        """A line for the user."""
        return (
            f"No model is configured: using {self.choice.model} ({self.title}) with "
            f"{self.variable}. Run `hermes setup` to choose another one."
        )


def environment_model(settings: Settings) -> EnvironmentModel | None:
    """The model of the first provider whose API key is known, if no model is configured.

    The base URL and the model may come from the environment, too: OPENAI_BASE_URL, OPENAI_MODEL,
    ANTHROPIC_BASE_URL, ANTHROPIC_MODEL.
    """
    for preset in PRESETS:
        found = known_key(settings, preset)
        if found is None:
            continue
        model = os.environ.get(f"{preset.name.upper()}_MODEL", "")
        if found.base_url:
            choice = ModelChoice(preset.api, model, found.base_url, found.key)
            return EnvironmentModel(choice, found.variable, found.base_url)
        choice = ModelChoice(preset.api, model or preset.model, preset.choice_url, found.key)
        return EnvironmentModel(choice, found.variable, preset.title)
    return None


class KnownKey(NamedTuple):
    """The key of a provider; with a base URL, it belongs to that endpoint instead."""

    key: str
    variable: str
    base_url: str = ""


def known_key(settings: Settings, preset: ProviderPreset) -> KnownKey | None:
    """The key of a provider, from the settings or the environment."""
    key, variable = settings.get_secret(preset.key_setting) or "", preset.variable
    for other in preset.other_variables:
        if not key and os.environ.get(other):
            key, variable = os.environ[other], other
    if not key:
        return None
    base_url = os.environ.get(f"{preset.name.upper()}_BASE_URL", "").rstrip("/")
    # A key goes to another host only if both come from the environment.
    if base_url in {"", preset.base_url} or key != os.environ.get(variable):
        return KnownKey(key, variable)
    return KnownKey(key, variable, _with_version(preset.api, base_url))


def _with_version(api: str, base_url: str) -> str:
    """The base URL of Anthropic's API with its version, which its variable does not have."""
    return f"{base_url}/v1" if api == "anthropic" and not base_url.endswith("/v1") else base_url


def selected_model(settings: Settings) -> ModelChoice | None:
    """The configured model, else that of an API key; without the name of a model, if unknown."""
    choice = configured_model(settings)
    if choice is not None:
        return choice
    found = environment_model(settings)
    return found.choice if found is not None else None


def key_for(settings: Settings, api: str, base_url: str) -> str:
    """Return the key that was given for exactly this endpoint; empty when there is none."""
    model_key = settings.get_secret("llm.key")
    configured_endpoint = (settings.get_str("llm.api"), settings.get_str("llm.base_url"))
    if model_key and (api, base_url) == configured_endpoint:
        return model_key
    name = key_name(api, base_url)
    return (settings.get_secret(name) or "") if name.startswith("keys.") else ""


def key_name(api: str, base_url: str) -> str:
    """Return the setting that holds the key for an endpoint; empty where no key is needed.

    A provider's key belongs to its host, compared as a whole and over TLS only.
    """
    if api in {"local", "script"}:
        return ""
    if not base_url:
        return "keys.anthropic" if api == "anthropic" else "keys.openai"
    url = urlsplit(base_url)
    is_standard = url.scheme == "https" and url.port in {None, 443}
    return KEY_SETTINGS.get(url.hostname or "", "llm.key") if is_standard else "llm.key"


def require_configured_url(settings: Settings, name: str) -> None:
    """Raise ConfigError if a model name carries a URL that the owner has not configured.

    For names that come from a page or a chat: text of a conversation is sent there.
    """
    if not name.startswith(URL_SCHEMES):
        return
    configured = [
        settings.get_str("llm.base_url"),
        *settings.get_list("llm.fallbacks"),
        *(server.base_url for server in local_servers()),
    ]
    if _origin(name) not in {_origin(url) for url in configured if url}:
        raise ConfigError(
            f"{name.partition('#')[0]} is not a configured endpoint. Add it in a terminal: "
            "`hermes config set llm.base_url URL`."
        )


def _origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port; a URL that cannot be parsed equals no other."""
    try:
        parts = urlsplit(url.partition("#")[0])
        origin = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        origin = "", url, None
    return origin


def model_by_name(settings: Settings, name: str, current: ModelChoice | None) -> ModelChoice:
    """Resolve a model name: `anthropic:NAME`, `URL#NAME`, `smollm2`, …, or a plain name."""
    if name == BUILT_IN:
        return ModelChoice("local", BUILT_IN)
    prefix, separator, rest = name.partition(":")
    if name.startswith(URL_SCHEMES):
        base_url, _, model = name.partition("#")
        if not model:
            raise ConfigError(f"No model in {name}. Use {name}#MODEL.")
        return ModelChoice("openai", model, base_url, key_for(settings, "openai", base_url))
    if separator and prefix == "script":
        return ModelChoice("script", rest)
    preset = PRESETS_BY_NAME.get(prefix) if separator else None
    if preset is not None:
        api, base_url = preset.api, preset.choice_url
        return ModelChoice(api, rest or preset.model, base_url, key_for(settings, api, base_url))
    if current is None or current.api == "local":
        raise ConfigError(
            f"Unknown provider {prefix or name!r}. Use PROVIDER:MODEL, e.g. anthropic:MODEL, "
            "or run `hermes setup`."
        )
    return current._replace(model=name)


def qualified_name(name: str, current: str) -> str:
    """A plain name as that of another model at the endpoint of the *current* one."""
    prefix, separator, _ = name.partition(":")
    if name == BUILT_IN or name.startswith(URL_SCHEMES):
        return name
    if separator and (prefix in PRESETS_BY_NAME or prefix == "script"):
        return name
    if current.startswith(URL_SCHEMES):
        return f"{current.partition('#')[0]}#{name}"
    provider, separator, _ = current.partition(":")
    return f"{provider}:{name}" if separator and provider in PRESETS_BY_NAME else name


def find_local_model() -> ModelChoice | None:
    """Return the first model of a local server, else the built-in model if installed."""
    for server in local_servers():
        models = list_served_models(server)
        if models:
            return ModelChoice("openai", models[0], server.base_url)
    return ModelChoice("local", BUILT_IN) if BuiltIn.of_home().is_installed else None


def local_servers() -> list[LocalServer]:
    """Return the local servers to probe; OLLAMA_HOST sets the address of Ollama."""
    ollama_host = os.environ.get("OLLAMA_HOST", "").strip()
    if not ollama_host:
        return list(LOCAL_SERVERS)
    return [LocalServer("Ollama", _ollama_url(ollama_host)), *LOCAL_SERVERS[1:]]


def _ollama_url(host: str) -> str:
    """Return the base URL for the address that Ollama listens on."""
    scheme, separator, rest = host.rpartition("://")
    name, _, port = rest.rstrip("/").partition(":")
    name = "127.0.0.1" if name in {"", "0.0.0.0"} else name  # noqa: S104 - compared, not bound
    return f"{scheme if separator else 'http'}://{name}:{port or OLLAMA_PORT}/v1"


def list_served_models(server: LocalServer) -> list[str]:
    """Return the models of a local server; empty when it is not running."""
    import httpx2  # noqa: PLC0415 - only needed to probe servers

    from hermes_agent.providers.http_stream import ssl_context  # noqa: PLC0415 - as above

    try:
        # Each client would load the trusted certificates again.
        response = httpx2.get(f"{server.base_url}/models", timeout=0.5, verify=ssl_context())
        answer: ModelListAnswer = response.json()
        return [str(model["id"]) for model in answer["data"]]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError):
        return []
