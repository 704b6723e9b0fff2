"""Model selection: from the settings, from available keys, or from local servers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from hermes_agent.local.built_in import MODEL_NAME as BUILT_IN
from hermes_agent.local.built_in import BuiltIn
from hermes_agent.providers.apis import (
    APIS,
    KEY_SETTINGS,
    LOCAL_API,
    OPENAI_API,
    PRESETS,
    SCRIPT_API,
    KnownKey,
    ModelChoice,
    ProviderApi,
    ProviderPreset,
    find_provider,
)
from hermes_core.config.settings import SETTINGS
from hermes_core.config.values import find_setting
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.providers.catalog import ModelListAnswer
    from hermes_core.config.file import ConfigFile, Settings

MODEL_SETTINGS: Final = ("llm.api", "llm.base_url", "llm.model")
URL_SCHEMES: Final = ("http://", "https://")


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


def configured_model(settings: Settings) -> ModelChoice | None:
    """Return the model from the settings; None when none is configured."""
    model = settings.get_str("llm.model")
    if not model:
        return None
    window = settings.get_int("llm.window")
    base_url = settings.get_str("llm.base_url")
    of_provider = None if base_url else _of_provider(settings, model)
    if of_provider is not None and of_provider.api.is_of_plugin:
        return of_provider._replace(window=window)
    api = APIS[settings.get_str("llm.api")]
    return ModelChoice(api, model, base_url, key_for(settings, api, base_url), window)


def _of_provider(settings: Settings, name: str) -> ModelChoice | None:
    """The model that a name PROVIDER:MODEL stands for; None for other names."""
    prefix, separator, model = name.partition(":")
    preset = find_provider(prefix) if separator else None
    if preset is None:
        return None
    key = key_for(settings, preset.api, preset.base_url)
    return ModelChoice(preset.api, model or preset.model, preset.base_url, key)


def save_choice(config: ConfigFile, choice: ModelChoice, key: str = "") -> list[str]:
    """Save *choice* as the default model; return notes for the user.

    The API key and the context window of a previous endpoint are removed: the key must not be
    sent to another one, and the window does not apply to it.
    """
    settings = config.settings()
    saved = (choice.api.name, choice.base_url, choice.model)
    if choice.api.is_of_plugin:
        saved = ("", "", f"{choice.api.name}:{choice.model}")
    before = tuple(settings.get_str(name) for name in MODEL_SETTINGS)
    has_moved = before[:2] != saved[:2]
    notes = []
    if has_moved and config.unset("llm.key"):
        notes.append("Removed the API key of the previous model (llm.key).")
    if before != saved and config.unset("llm.window"):
        notes.append("Reset llm.window, which was set for the previous model.")
    name = key_name(choice.api, choice.base_url)
    if name and key and key != settings.get_secret(name):
        config.set(name, key)
    for setting, value in zip(MODEL_SETTINGS, saved, strict=True):
        if value:
            config.set(setting, value)
        else:
            config.unset(setting)
    return [*notes, *_overridden_settings(config)]


def _overridden_settings(config: ConfigFile) -> Iterator[str]:
    for name in MODEL_SETTINGS:
        if config.entry(name).source == "environment":
            variable = find_setting(SETTINGS, name).variable
            yield f"The environment variable {variable} overrides the saved setting."


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
            choice = preset.elsewhere(model, found)
            return EnvironmentModel(choice, found.variable, found.base_url)
        choice = ModelChoice(preset.api, model or preset.model, preset.base_url, found.key)
        return EnvironmentModel(choice, found.variable, preset.title)
    return None


def known_key(settings: Settings, preset: ProviderPreset) -> KnownKey | None:
    """The key of a provider, from the settings or the environment."""
    key, variable = settings.get_variable(preset.variable), preset.variable
    for other in preset.other_variables:
        if not key and os.environ.get(other):
            key, variable = os.environ[other], other
    if not key and preset.variable:
        return None
    base_url = os.environ.get(f"{preset.name.upper()}_BASE_URL", "").rstrip("/")
    # A key goes to another host only if both come from the environment.
    if base_url in {"", preset.url} or key != os.environ.get(variable):
        return KnownKey(key, variable)
    version = preset.api.version_path
    return KnownKey(key, variable, base_url.removesuffix(version) + version)


def selected_model(settings: Settings) -> ModelChoice | None:
    """The configured model, else that of an API key; without the name of a model, if unknown."""
    choice = configured_model(settings)
    if choice is not None:
        return choice
    found = environment_model(settings)
    return found.choice if found is not None else None


def key_for(settings: Settings, api: ProviderApi, base_url: str) -> str:
    """Return the key that was given for exactly this endpoint; empty when there is none."""
    if api.is_of_plugin:
        return settings.get_variable(api.key_variable)
    model_key = settings.get_secret("llm.key")
    configured_endpoint = (settings.get_str("llm.api"), settings.get_str("llm.base_url"))
    if model_key and (api.name, base_url) == configured_endpoint:
        return model_key
    name = key_name(api, base_url)
    return (settings.get_secret(name) or "") if name.startswith("keys.") else ""


def key_name(api: ProviderApi, base_url: str) -> str:
    """Return the setting that holds the key for an endpoint; empty where no key is needed.

    A provider's key belongs to its host, compared as a whole and over TLS only.
    """
    if api.is_of_plugin or not api.default_url:
        return ""
    url = urlsplit(base_url or api.default_url)
    is_standard = url.scheme == "https" and url.port in {None, 443}
    return KEY_SETTINGS.get(url.hostname or "", "llm.key") if is_standard else "llm.key"


def missing_key_setting(choice: ModelChoice) -> str:
    """The setting of the API key that a hosted model needs and that is not set; else empty."""
    setting = key_name(choice.api, choice.base_url)
    return setting if setting.startswith("keys.") and not choice.key else ""


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
        return ModelChoice(LOCAL_API, BUILT_IN)
    prefix, separator, rest = name.partition(":")
    if name.startswith(URL_SCHEMES):
        base_url, _, model = name.partition("#")
        if not model:
            raise ConfigError(f"No model in {name}. Use {name}#MODEL.")
        return ModelChoice(OPENAI_API, model, base_url, key_for(settings, OPENAI_API, base_url))
    if separator and prefix == SCRIPT_API.name:
        return ModelChoice(SCRIPT_API, rest)
    of_provider = _of_provider(settings, name)
    if of_provider is not None:
        return of_provider
    if current is None or current.api.only_model:
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
    if separator and (prefix == SCRIPT_API.name or find_provider(prefix)):
        return name
    if current.startswith(URL_SCHEMES):
        return f"{current.partition('#')[0]}#{name}"
    provider, separator, _ = current.partition(":")
    return f"{provider}:{name}" if separator and find_provider(provider) else name


def find_local_model() -> ModelChoice | None:
    """Return the first model of a local server, else the built-in model if installed."""
    for server in local_servers():
        models = list_served_models(server)
        if models:
            return ModelChoice(OPENAI_API, models[0], server.base_url)
    return ModelChoice(LOCAL_API, BUILT_IN) if BuiltIn.of_home().is_installed else None


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
