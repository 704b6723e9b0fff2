"""A scheduled job that a web page has requested, as a pending change stores it."""

from __future__ import annotations

import json
from typing import NamedTuple


class RequestedJob(NamedTuple):
    """A job that is created after a confirmation in a terminal."""

    schedule: str
    prompt: str
    name: str
    zone: str

    def to_text(self) -> str:
        """The stored form."""
        return json.dumps(self._asdict(), ensure_ascii=False)

    @classmethod
    def of_text(cls, text: str) -> RequestedJob:
        """The job of a stored form."""
        return cls(**json.loads(text))

    @property
    def summary(self) -> str:
        """One line for a person who decides about it."""
        zone = f" ({self.zone})" if self.zone else ""
        return f"{self.schedule}{zone}: {self.prompt}"
