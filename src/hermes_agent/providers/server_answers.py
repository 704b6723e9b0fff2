"""What model servers answer about their models, as far as it is used."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ListedPrices(TypedDict, total=False):
    """Prices: per token (OpenRouter) or per million tokens (Together)."""

    prompt: str | float
    completion: str | float
    input: float
    output: float


class ListedModel(TypedDict, total=False):
    """A model in the answer of `GET /models`; servers add fields of their own."""

    id: str
    created: float
    context_length: int
    context_window: int
    max_context_length: int
    max_input_tokens: int
    max_model_len: int
    pricing: ListedPrices | None


class ModelListAnswer(TypedDict):
    """The answer of `GET /models`."""

    data: list[ListedModel]


class GenerationSettings(TypedDict):
    """A part of the answer of llama.cpp's `GET /props`."""

    n_ctx: int


class ServerProperties(TypedDict):
    """The answer of llama.cpp's `GET /props`."""

    default_generation_settings: GenerationSettings


class LoadedModel(TypedDict):
    """A model in the answer of Ollama's `GET /api/ps`."""

    name: str
    context_length: NotRequired[int]


class LoadedModels(TypedDict):
    """The answer of Ollama's `GET /api/ps`."""

    models: list[LoadedModel]


class StoredModel(TypedDict):
    """The answer of Ollama's `POST /api/show`."""

    parameters: NotRequired[str | None]
    model_info: dict[str, int]
