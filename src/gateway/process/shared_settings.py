"""Settings that gateways with one history must agree on, compared when a gateway joins.

A chat is received on one node and answered on another: they have to derive the same key for it,
end its conversation at the same time and give it the same model and limits.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError
from hermes_state.engine.process_identity import node_name

if TYPE_CHECKING:
    from hermes_state import SessionDB

SETTINGS: Final = (
    "agent.approvals",
    "agent.busy_input",
    "display.timezone",
    "gateway.dollars_per_day",
    "gateway.group_sessions_per_user",
    "gateway.job_failures",
    "gateway.session_store_max_age_days",
    "gateway.thread_sessions_per_user",
    "gateway.tokens_per_day",
    "gateway.unauthorized_dm_behavior",
    "gateway.user_dollars_per_day",
    "gateway.user_tokens_per_day",
    "gateway.user_turns_per_minute",
    "llm.model",
    "session_reset.at_hour",
    "session_reset.idle_minutes",
    "session_reset.mode",
    "store.node_timeout_seconds",
)
BLOCKS: Final = ("reset_by_platform", "reset_by_type")
TIME_ZONE: Final = "time zone of the system"


def read() -> dict[str, str]:
    """The values of this node, as text."""
    config = ConfigFile.of_home()
    values = {name: str(config.get(name)) for name in SETTINGS}
    blocks = {name: json.dumps(config.block(name), sort_keys=True) for name in BLOCKS}
    return {**values, **blocks, TIME_ZONE: "/".join(time.tzname)}


def join(db: SessionDB) -> None:
    """Register this gateway; ConfigError if a running gateway has other values."""
    difference = db.nodes.join(node_name(), read())
    if difference is None:
        return
    raise ConfigError(
        f"The gateways of this history must have the same settings. {difference.name} is "
        f"{difference.here!r} here and {difference.there!r} on {difference.node}. Change one of "
        "them, then start this gateway again."
    )
