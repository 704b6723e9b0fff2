"""Keys for what must arrive once: platforms want theirs short and in few letters."""

from __future__ import annotations

import hashlib


def key_of(*words: str) -> str:
    """The same for the same words; a platform takes what has it once."""
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:40]
