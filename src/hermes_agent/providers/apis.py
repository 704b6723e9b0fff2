"""The APIs of models and the providers that have them, in one table; plugins add theirs.

An API knows how a provider is opened and how models are listed and checked; other code asks
it. `hermes_plugin_host` holds the providers of plugins (`ctx.register_provider`).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import hermes_plugin_host
from hermes_agent.local.built_in import MODEL_NAME as BUILT_IN
from hermes_agent.local.built_in import BuiltIn
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import PluginError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_agent.providers.base import Provider

OPENAI: Final = "https://api.openai.com/v1"
OPENROUTER: Final = "https://openrouter.ai/api/v1"
ANTHROPIC: Final = "https://api.anthropic.com/v1"
GEMINI: Final = "https://generativelanguage.googleapis.com/v1beta"
ANTHROPIC_VERSION: Final = "2023-06-01"
DEFAULT_EFFORT: Final = "default"
DEFAULT_SCRIPT_WINDOW: Final = 128_000
CURRENT_FOLDER: Final = Path()
PROVIDER_FIELDS: Final = ("name", "model", "base_url", "window", "stream", "close")
COST_OPTIONS: Final = {"usage": {"include": True}}  # makes OpenRouter report the cost of a response


class ModelChoice(NamedTuple):
    """A model, its API and its endpoint; `key` is never displayed."""

    api: ProviderApi
    model: str
    base_url: str = ""
    key: str = ""
    window: int = 0
    max_output: int = 0  # tokens of an answer; 0 uses the model's limit
    effort: str = ""  # of reasoning; empty uses the model's default
    rules_of: str = ""  # the address whose rules apply, if it is not that of the endpoint

    @property
    def url(self) -> str:
        """The base URL, also where the choice leaves it to its API."""
        return (self.base_url or self.api.default_url).rstrip("/")

    @property
    def server(self) -> str:
        """The base URL, or the name of the provider that has one of its own."""
        return self.base_url or self.api.title

    @property
    def is_built_in(self) -> bool:
        """Whether it is the built-in demo model."""
        return self.api.only_model == BUILT_IN

    def with_limits(self, max_output: int, effort: str) -> ModelChoice:
        """The choice with an output limit and an effort; `default` is the model's own."""
        chosen = "" if effort == DEFAULT_EFFORT else effort
        return self._replace(max_output=max_output, effort=chosen)

    def provider(self, folder: Path = CURRENT_FOLDER) -> Provider:
        """Create the provider; the path of a script is relative to *folder*."""
        return self.api.open(self, folder)


class ModelCheck(NamedTuple):
    """Whether a model can be used; the status is ok, warning or failed."""

    status: str
    detail: str
    advice: str = ""


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


@dataclasses.dataclass(frozen=True)
class ProviderApi:
    """An API; its name is the value of `llm.api`, or the prefix of the models of a plugin."""

    name: str
    title: str
    open: Callable[[ModelChoice, Path], Provider]
    default_url: str = ""
    version_path: str = ""  # the end of base URLs, which variables of the environment omit
    key_headers: Callable[[str], dict[str, str]] = _bearer
    list_path: str = "models"  # empty: there is no list
    models: Callable[[], Iterable[str]] | None = None  # lists them without HTTP
    check: Callable[[ModelChoice], ModelCheck] | None = None  # without a list
    only_model: str = ""  # the one that there is
    key_variable: str = ""  # of a plugin; other keys belong to hosts
    is_of_plugin: bool = False

    @property
    def has_list(self) -> bool:
        """Whether its models can be listed."""
        return bool(self.list_path or self.models)


def _open_openai(choice: ModelChoice, _folder: Path) -> Provider:
    from hermes_agent.providers import rules  # noqa: PLC0415 - only for HTTP
    from hermes_agent.providers.openai_compatible import OpenAICompatible  # noqa: PLC0415 - one of several

    return OpenAICompatible(
        choice.model,
        choice.base_url or choice.api.default_url,
        choice.key,
        window=choice.window,
        max_output=choice.max_output,
        effort=choice.effort,
        extra=COST_OPTIONS if choice.url == OPENROUTER else None,
        rules=rules.rules_for(choice.rules_of or choice.url, choice.model),
    )


def _open_responses(choice: ModelChoice, _folder: Path) -> Provider:
    from hermes_agent.providers.responses import Responses  # noqa: PLC0415 - one of several

    return Responses(
        choice.model,
        choice.base_url or choice.api.default_url,
        choice.key,
        window=choice.window,
        max_output=choice.max_output,
        effort=choice.effort,
    )


def _open_gemini(choice: ModelChoice, _folder: Path) -> Provider:
    from hermes_agent.providers.gemini import GoogleGemini  # noqa: PLC0415 - one of several

    return GoogleGemini(
        choice.model,
        choice.base_url or choice.api.default_url,
        choice.key,
        window=choice.window,
        max_output=choice.max_output,
        effort=choice.effort,
    )


def _open_anthropic(choice: ModelChoice, _folder: Path) -> Provider:
    from hermes_agent.providers.anthropic import Anthropic  # noqa: PLC0415 - one of several

    return Anthropic(
        choice.model,
        choice.key,
        choice.base_url or choice.api.default_url,
        window=choice.window,
        max_output=choice.max_output,
        effort=choice.effort,
    )


def _open_built_in(choice: ModelChoice, _folder: Path) -> Provider:
    from hermes_agent.providers import built_in  # noqa: PLC0415 - one of several

    return built_in.LocalModel(window=choice.window or built_in.WINDOW_TOKENS)


def _open_script(choice: ModelChoice, folder: Path) -> Provider:
    from hermes_agent.providers.scripted import ModelScript, ScriptedProvider  # noqa: PLC0415 - only for tests and demos

    script = ModelScript.load(folder / choice.model)
    return ScriptedProvider(script, window=choice.window or DEFAULT_SCRIPT_WINDOW)


def _check_built_in(choice: ModelChoice) -> ModelCheck:
    is_here = BuiltIn.of_home().is_installed
    detail = f"{choice.model}, {'installed' if is_here else 'not installed'}"
    advice = f"Run `hermes models get {choice.model}`"
    return ModelCheck("ok" if is_here else "failed", detail, advice)


OPENAI_API: Final = ProviderApi("openai", "openai", _open_openai, OPENAI)
RESPONSES_API: Final = ProviderApi("responses", "openai", _open_responses, OPENAI)
GEMINI_API: Final = ProviderApi(
    "gemini",
    "Google Gemini",
    _open_gemini,
    GEMINI,
    key_headers=lambda key: {"x-goog-api-key": key} if key else {},
    list_path="models?pageSize=1000",  # the lists have pages
)
ANTHROPIC_API: Final = ProviderApi(
    "anthropic",
    "Anthropic",
    _open_anthropic,
    ANTHROPIC,
    version_path="/v1",
    key_headers=lambda key: {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION},
    list_path="models?limit=1000",  # the lists have pages
)
LOCAL_API: Final = ProviderApi(
    "local", "built-in", _open_built_in, list_path="", check=_check_built_in, only_model=BUILT_IN
)
SCRIPT_API: Final = ProviderApi(
    "script",
    "script",
    _open_script,
    list_path="",
    check=lambda choice: ModelCheck("ok", f"the script {choice.model}"),
)
APIS: Final = {
    api.name: api
    for api in (OPENAI_API, RESPONSES_API, ANTHROPIC_API, GEMINI_API, LOCAL_API, SCRIPT_API)
}


class ProviderPreset(NamedTuple):
    """A provider; `name` is the prefix of its models, e.g. groq:MODEL."""

    name: str
    title: str
    api: ProviderApi
    base_url: str  # empty for the default of its API
    variable: str  # the environment variable of the API key
    model: str  # the default
    other_variables: tuple[str, ...] = ()  # other common names of the variable

    @property
    def key_setting(self) -> str:
        """The setting of the API key."""
        return f"keys.{self.name}"

    @property
    def url(self) -> str:
        """The base URL, also where it is the default."""
        return self.base_url or self.api.default_url

    def elsewhere(self, model: str, found: KnownKey) -> ModelChoice:
        """One of its models at another address: OpenAI's API is that of many other servers."""
        api = OPENAI_API if self.api is RESPONSES_API else self.api
        rules_of = "" if self.api is RESPONSES_API else self.url
        return ModelChoice(api, model, found.base_url, found.key, rules_of=rules_of)


class KnownKey(NamedTuple):
    """The key of a provider; with a base URL, it belongs to that endpoint instead."""

    key: str
    variable: str
    base_url: str = ""


# In the order in which keys of the environment are used.
PRESETS: Final = (
    ProviderPreset(
        "anthropic", "Anthropic", ANTHROPIC_API, "", "ANTHROPIC_API_KEY", "claude-sonnet-5-5",
    ),
    ProviderPreset("openai", "OpenAI", RESPONSES_API, OPENAI, "OPENAI_API_KEY", "gpt-5.6"),
    ProviderPreset(
        "openrouter", "OpenRouter", OPENAI_API, OPENROUTER,
        "OPENROUTER_API_KEY", "anthropic/claude-sonnet-5.5",
    ),
    ProviderPreset(
        "gemini", "Google Gemini", OPENAI_API,
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY", "gemini-3.8-flash", ("GOOGLE_API_KEY",),
    ),
    ProviderPreset("xai", "xAI", OPENAI_API, "https://api.x.ai/v1", "XAI_API_KEY", "grok-4.7"),
    ProviderPreset(
        "mistral", "Mistral", OPENAI_API, "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY", "mistral-large-latest",
    ),
    ProviderPreset(
        "deepseek", "DeepSeek", OPENAI_API, "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY", "deepseek-chat",
    ),
    ProviderPreset(
        "groq", "Groq", OPENAI_API, "https://api.groq.com/openai/v1",
        "GROQ_API_KEY", "openai/gpt-oss-120b",
    ),
    ProviderPreset(
        "together", "Together AI", OPENAI_API, "https://api.together.xyz/v1",
        "TOGETHER_API_KEY", "openai/gpt-oss-120b",
    ),
    ProviderPreset(
        "cerebras", "Cerebras", OPENAI_API, "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY", "gpt-oss-120b",
    ),
    ProviderPreset(
        "moonshot", "Moonshot AI", OPENAI_API, "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY", "kimi-k2.6",
    ),
    ProviderPreset(
        "zai", "Z.ai", OPENAI_API, "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.3",
    ),
)  # fmt: skip
PRESETS_BY_NAME: Final = {preset.name: preset for preset in PRESETS}
KEY_SETTINGS: Final = {urlsplit(preset.url).hostname: preset.key_setting for preset in PRESETS}


class VariableGroup(NamedTuple):
    """Environment variables that belong together: a key must not be sent to another's address."""

    keys: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.keys, *self.others)


def variable_groups() -> list[VariableGroup]:
    """The variables of each provider: its keys, its address and its default model."""
    own = VariableGroup(
        ("HERMES_LLM_KEY",), ("HERMES_LLM_BASE_URL", "HERMES_LLM_API", "HERMES_LLM_MODEL")
    )
    providers = [
        VariableGroup(
            (preset.variable, *preset.other_variables),
            (f"{preset.name.upper()}_BASE_URL", f"{preset.name.upper()}_MODEL"),
        )
        for preset in PRESETS
    ]
    return [own, *providers]


def _opens(
    name: str, create: Callable[[ModelChoice, Path], Provider]
) -> Callable[[ModelChoice, Path], Provider]:
    """The function of a plugin that opens its provider; what is wrong with it is an error."""

    def opened(choice: ModelChoice, folder: Path) -> Provider:
        found = attempt(f"open provider {name}", lambda: create(choice, folder))
        if isinstance(found, Failure):
            raise PluginError(f"the provider {name} cannot be opened: {found.reason}")
        missing = [field for field in PROVIDER_FIELDS if not hasattr(found, field)]
        if missing:
            raise PluginError(f"the provider {name} has no {', '.join(missing)}")
        return found

    return opened


def providers() -> list[ProviderPreset]:
    """The providers of the table, then those of enabled plugins."""
    if not is_set("plugins.enabled"):
        return list(PRESETS)
    found = {preset.name: preset for preset in PRESETS}
    for plugin in hermes_plugin_host.active().plugins.values():
        for added in plugin.registered.providers:
            common = APIS[added.api]
            api = dataclasses.replace(
                common,
                name=added.name,
                title=added.title,
                open=_opens(added.name, added.open) if added.open else common.open,
                default_url=added.base_url,
                models=added.models,
                list_path="" if added.open else common.list_path,
                key_variable=added.variable,
                is_of_plugin=True,
            )
            preset = ProviderPreset(added.name, added.title, api, "", added.variable, added.model)
            found.setdefault(added.name, preset)
    return list(found.values())


def find_provider(name: str) -> ProviderPreset | None:
    """The provider with a name."""
    known = PRESETS_BY_NAME.get(name)
    return known or next((each for each in providers() if each.name == name), None)


def provider_of(choice: ModelChoice) -> ProviderPreset | None:
    """The provider of a model; None for an endpoint of one's own."""
    if choice.api.is_of_plugin:
        return find_provider(choice.api.name)
    return next((preset for preset in PRESETS if preset.url == choice.url), None)
