"""Whether a model can be used: its endpoint is asked for its models, which costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import FailureKind
from hermes_agent.providers import selection

if TYPE_CHECKING:
    from hermes_agent.providers.selection import ModelChoice

# Failures that the user has to repair; others may pass.
LASTING_FAILURES: Final = frozenset({FailureKind.KEY, FailureKind.FORBIDDEN, FailureKind.MODEL})


class ModelCheck(NamedTuple):
    """The result of a check; the status is ok, warning or failed."""

    status: str
    detail: str
    advice: str = ""


def missing_key(choice: ModelChoice) -> ModelCheck | None:
    """The problem of a model of a hosted provider without an API key; None if there is none."""
    setting = selection.key_name(choice.api, choice.base_url)
    if not setting.startswith("keys.") or choice.key:
        return None
    advice = f"Run `hermes setup`, or `hermes config set {setting}`"
    return ModelCheck("failed", f"{choice.model}: the API key is missing", advice)


def check_model(choice: ModelChoice) -> ModelCheck:
    """Whether the key is accepted, and the endpoint lists the model."""
    from hermes_agent.local.built_in import BuiltIn  # noqa: PLC0415 - `--help` does without
    from hermes_agent.providers.model_list import list_models  # noqa: PLC0415 - as above

    problem = missing_key(choice)
    if problem is not None:
        return problem
    if choice.api == "local":
        is_here = BuiltIn.of_home().is_installed
        detail = f"{choice.model}, {'installed' if is_here else 'not installed'}"
        advice = f"Run `hermes models get {choice.model}`"
        return ModelCheck("ok" if is_here else "failed", detail, advice)
    if choice.api == "script":
        return ModelCheck("ok", f"the script {choice.model}")
    listed = list_models(choice)
    if listed.failure is not None:
        is_lasting = listed.failure.kind in LASTING_FAILURES
        level = "failed" if is_lasting else "warning"
        return ModelCheck(level, listed.failure.message, listed.failure.advice)
    if listed.names and choice.model not in {*listed.names, *_untagged(listed.names)}:
        detail = f"{choice.model} is not in the list of its endpoint"
        return ModelCheck("warning", detail, "Run `hermes models` to choose another one")
    return ModelCheck("ok", f"{choice.model}; the endpoint answers and accepts the key")


def _untagged(names: list[str]) -> list[str]:
    return [name.removesuffix(":latest") for name in names]
