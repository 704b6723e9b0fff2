"""Hosted providers: address, API, key and a sensible default model, in one table."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

OPENAI: Final = "https://api.openai.com/v1"
OPENROUTER: Final = "https://openrouter.ai/api/v1"
ANTHROPIC: Final = "https://api.anthropic.com/v1"


class ProviderPreset(NamedTuple):
    """A provider; `name` is the prefix of its models, e.g. groq:MODEL."""

    name: str
    title: str
    api: str
    base_url: str
    variable: str  # the environment variable of the API key
    model: str  # the default
    other_variables: tuple[str, ...] = ()  # other common names of the variable

    @property
    def key_setting(self) -> str:
        """The setting of the API key."""
        return f"keys.{self.name}"

    @property
    def host(self) -> str:
        """The host that the key belongs to."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def choice_url(self) -> str:
        """The base URL as it is saved: empty where the API has a default."""
        return "" if self.api == "anthropic" else self.base_url


# In the order in which keys of the environment are used.
PRESETS: Final = (
    ProviderPreset(
        "anthropic", "Anthropic", "anthropic", ANTHROPIC, "ANTHROPIC_API_KEY", "claude-sonnet-5-5"
    ),
    ProviderPreset("openai", "OpenAI", "openai", OPENAI, "OPENAI_API_KEY", "gpt-5.6"),
    ProviderPreset(
        "openrouter",
        "OpenRouter",
        "openai",
        OPENROUTER,
        "OPENROUTER_API_KEY",
        "anthropic/claude-sonnet-5.5",
    ),
    ProviderPreset(
        "gemini",
        "Google Gemini",
        "openai",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-3.8-flash",
        ("GOOGLE_API_KEY",),
    ),
    ProviderPreset("xai", "xAI", "openai", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4.7"),
    ProviderPreset(
        "mistral",
        "Mistral",
        "openai",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "mistral-large-latest",
    ),
    ProviderPreset(
        "deepseek",
        "DeepSeek",
        "openai",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        "deepseek-chat",
    ),
    ProviderPreset(
        "groq",
        "Groq",
        "openai",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        "openai/gpt-oss-120b",
    ),
    ProviderPreset(
        "together",
        "Together AI",
        "openai",
        "https://api.together.xyz/v1",
        "TOGETHER_API_KEY",
        "openai/gpt-oss-120b",
    ),
    ProviderPreset(
        "cerebras",
        "Cerebras",
        "openai",
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
        "gpt-oss-120b",
    ),
    ProviderPreset(
        "moonshot",
        "Moonshot AI",
        "openai",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        "kimi-k2.6",
    ),
    ProviderPreset(
        "zai", "Z.ai", "openai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.3"
    ),
)
PRESETS_BY_NAME: Final = {preset.name: preset for preset in PRESETS}
KEY_SETTINGS: Final = {preset.host: preset.key_setting for preset in PRESETS}


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


def preset_of(api: str, base_url: str) -> ProviderPreset | None:
    """The provider at an endpoint; None for an endpoint of one's own."""
    for preset in PRESETS:
        is_default = not base_url and preset.name == (
            "anthropic" if api == "anthropic" else "openai"
        )
        if is_default or (base_url and base_url.rstrip("/") == preset.base_url):
            return preset
    return None
