"""Models, commands, steps and checkpoints as clients of the daemon list them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model of a list; prices are dollars per million tokens."""

    name: str
    provider: str
    window: int = 0
    input_price: float | None = None
    output_price: float | None = None

    @property
    def window_text(self) -> str:
        """The context window in thousands of tokens."""
        return f"{round(self.window / 1000):,}k" if self.window else "-"

    @property
    def price_text(self) -> str:
        """The price of input and output per million tokens."""
        if self.input_price is None or self.output_price is None:
            return "-"
        return f"${self.input_price:g} / ${self.output_price:g}"


@dataclass(frozen=True, slots=True)
class CommandSummary:
    """A slash command."""

    name: str
    hint: str
    help: str
    aliases: list[str] = field(default_factory=list)
    while_busy: bool = False
    choices: list[str] = field(default_factory=list)  # of the first argument, where known


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """What a turn or a restore changed in files; `kind` is turn or restore."""

    number: int
    kind: str
    folder: str
    message_id: int
    started_at: float
    files: int
    about: str


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that a restore would change; with a problem only if `may_force` and forced."""

    path: str
    change: str
    problem: str = ""
    may_force: bool = False


@dataclass(frozen=True, slots=True)
class TodoStep:
    """A step of the agent's list; `status` is pending, active or done."""

    text: str
    status: str
