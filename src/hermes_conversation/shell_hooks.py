"""Shell hooks of conversations: from config.yaml and from trusted files of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_agent.project.files import FileKind
from hermes_agent.shell_hooks.config import (
    SECTION,
    ShellHooks,
    combine,
    parse_hooks,
    parse_project_hooks,
)
from hermes_core.config.yaml_reader import is_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hermes_agent.project.trust import ProjectTrust
    from hermes_agent.shell_hooks.invoker import ShellHookInvoker
    from hermes_agent.turn_hooks import HookInvoker
    from hermes_core.config.file import ConfigFile
    from hermes_core.json_values import JsonObject
    from hermes_state.store import SessionDB


def load_hooks(config: ConfigFile, trust: ProjectTrust | None) -> ShellHooks:
    """The hooks of the user, and those in trusted files of a project."""
    parts = []
    if is_set(SECTION):
        block = cast("JsonObject", config.block(SECTION))
        parts.append(parse_hooks(block, str(config.path)))
    files = trust.trusted if trust is not None else ()
    parts += [parse_project_hooks(file) for file in files if file.kind is FileKind.HOOKS]
    return combine(parts)


def invoker_of(
    db: SessionDB,
    hooks: ShellHooks,
    cwd: Path,
    environment: Callable[[], Mapping[str, str]],
    plugins: HookInvoker,
) -> ShellHookInvoker | None:
    """The invoker of a conversation; None without hooks."""
    if not hooks.hooks:
        return None
    from hermes_agent.shell_hooks.invoker import (  # noqa: PLC0415 - most have no hooks
        HookRunner,
        ShellHookInvoker,
    )
    from hermes_agent.shell_hooks.transcripts import Transcripts  # noqa: PLC0415 - as above

    return ShellHookInvoker(HookRunner(hooks, cwd, environment(), Transcripts(db)), plugins)
