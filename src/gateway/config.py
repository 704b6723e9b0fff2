"""The gateway configuration: platforms, reset policies, streaming, limits.

Reading is lenient, because these files are edited by hand and by other programs: an unknown
platform is skipped, an invalid value is replaced by its default.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, cast

from gateway import config_values
from gateway.platforms.names import Platform
from hermes_core.paths import hermes_home
from hermes_core.policy import RESET_MODES, ResetPolicy

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

__all__ = [
    "GatewayConfig",
    "HomeChannel",
    "Platform",
    "PlatformConfig",
    "SessionResetPolicy",
    "StreamingConfig",
]

SessionResetPolicy = ResetPolicy  # the name that plugins of hermes-agent import
REPLY_MODES: Final = ("off", "first", "all")
STREAMING_TRANSPORTS: Final = ("auto", "draft", "edit", "off")
DEFAULT_MAX_AGE_DAYS: Final = 90


class StoredHomeChannel(TypedDict, total=False):
    """The JSON form of a home channel."""

    platform: str
    chat_id: str
    name: str
    thread_id: str


@dataclass(frozen=True)
class HomeChannel:
    """The default chat of a platform, for messages that are not replies."""

    platform: Platform
    chat_id: str
    name: str = "Home"
    thread_id: str | None = None

    @classmethod
    def from_dict(cls, data: StoredHomeChannel) -> Self:
        """Read the JSON form."""
        thread = data.get("thread_id")
        return cls(
            Platform(data["platform"]),
            str(data["chat_id"]),
            config_values.text(data.get("name"), "Home"),
            str(thread) if thread else None,
        )


def reset_policy(data: JsonObject) -> ResetPolicy:
    """Read the JSON form of a policy."""
    default = ResetPolicy()
    excluded = data.get("notify_exclude_platforms")
    hour = config_values.number(data.get("at_hour"), default.at_hour)
    return ResetPolicy(
        config_values.choice(data.get("mode"), RESET_MODES, default.mode),
        hour if 0 <= hour <= 23 else default.at_hour,
        config_values.number(data.get("idle_minutes"), default.idle_minutes, minimum=1),
        config_values.flag(data.get("notify"), default=default.notify),
        tuple(map(str, excluded))
        if isinstance(excluded, list | tuple)
        else default.notify_exclude_platforms,
    )


PLATFORM_KEYS: Final = frozenset(
    {
        "enabled",
        "token",
        "api_key",
        "home_channel",
        "reply_to_mode",
        "gateway_restart_notification",
        "extra",
    }
)


@dataclass
class PlatformConfig:
    """The configuration of one platform."""

    enabled: bool = False
    token: str | None = None
    api_key: str | None = None
    home_channel: HomeChannel | None = None
    reply_to_mode: str = "first"
    gateway_restart_notification: bool = True
    extra: JsonObject = field(default_factory=dict)
    is_off: bool = False  # explicitly `enabled: false`

    @classmethod
    def from_dict(cls, data: JsonObject, platform: str = "") -> Self:
        """Read the JSON form, of a platform."""
        rest = {name: item for name, item in data.items() if name not in PLATFORM_KEYS}
        extra = {**rest, **config_values.mapping(data.get("extra"))}
        home = data.get("home_channel")
        restart = data.get(
            "gateway_restart_notification", extra.get("gateway_restart_notification")
        )
        return cls(
            enabled=config_values.flag(data.get("enabled"), default=False),
            token=config_values.text(data.get("token")) or None,
            api_key=config_values.text(data.get("api_key")) or None,
            home_channel=_home_channel(home, platform),
            reply_to_mode=config_values.choice(data.get("reply_to_mode"), REPLY_MODES, "first"),
            gateway_restart_notification=config_values.flag(restart, default=True),
            extra=extra,
            is_off=not config_values.flag(data.get("enabled"), default=True),
        )


def _home_channel(data: Any, platform: str) -> HomeChannel | None:
    """Read a home channel: a chat ID, or an object with a chat ID and a name."""
    given = data if isinstance(data, dict) else {"chat_id": data} if data else {}
    channel = cast("StoredHomeChannel", {"platform": platform, **given})
    if not channel.get("chat_id") or find_platform(channel["platform"]) is None:
        return None
    return HomeChannel.from_dict(channel)


def find_platform(name: Any) -> Platform | None:
    """The platform with a name; None if it is unknown."""
    try:
        return Platform(name)
    except ValueError:
        return None


@dataclass
class StreamingConfig:
    """Whether and how a reply is shown while it is written."""

    enabled: bool = False
    transport: str = "auto"
    edit_interval: float = 0.8
    buffer_threshold: int = 24
    cursor: str = " ▉"
    fresh_final_after_seconds: float = 0.0

    @classmethod
    def from_dict(cls, data: JsonObject) -> Self:
        """Read the JSON form."""
        default = cls()
        return cls(
            config_values.flag(data.get("enabled"), default=default.enabled),
            config_values.choice(data.get("transport"), STREAMING_TRANSPORTS, default.transport),
            config_values.fraction(data.get("edit_interval"), default.edit_interval),
            config_values.number(data.get("buffer_threshold"), default.buffer_threshold, minimum=1),
            config_values.text(data.get("cursor"), default.cursor),
            config_values.fraction(
                data.get("fresh_final_after_seconds"), default.fresh_final_after_seconds
            ),
        )


@dataclass
class GatewayConfig:
    """The configuration of the gateway."""

    platforms: dict[Platform, PlatformConfig] = field(default_factory=dict)
    default_reset_policy: ResetPolicy = field(default_factory=ResetPolicy)
    reset_by_type: dict[str, ResetPolicy] = field(default_factory=dict)
    reset_by_platform: dict[Platform, ResetPolicy] = field(default_factory=dict)
    reset_triggers: list[str] = field(default_factory=lambda: ["/new", "/reset"])
    quick_commands: JsonObject = field(default_factory=dict)
    sessions_dir: Path = field(default_factory=lambda: hermes_home() / "sessions")
    always_log_local: bool = True
    filter_silence_narration: bool = True
    stt_enabled: bool = True
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    max_concurrent_sessions: int | None = None
    multiplex_profiles: bool = False
    unauthorized_dm_behavior: str = "pair"
    streaming: StreamingConfig = field(default_factory=StreamingConfig)
    session_store_max_age_days: int = DEFAULT_MAX_AGE_DAYS

    def get_reset_policy(
        self, platform: Platform | None = None, session_type: str | None = None
    ) -> ResetPolicy:
        """The policy of the platform, else of the chat type, else the default."""
        if platform is not None and platform in self.reset_by_platform:
            return self.reset_by_platform[platform]
        if session_type is not None and session_type in self.reset_by_type:
            return self.reset_by_type[session_type]
        return self.default_reset_policy

    def get_connected_platforms(self) -> list[Platform]:
        """The enabled platforms."""
        return [platform for platform, config in self.platforms.items() if config.enabled]

    def get_home_channel(self, platform: Platform) -> HomeChannel | None:
        """The home channel of a platform."""
        config = self.platforms.get(platform)
        return config.home_channel if config else None

    def get_unauthorized_dm_behavior(self, platform: Platform | None = None) -> str:
        """How unknown users in direct chats are treated: `pair` or `ignore`."""
        config = self.platforms.get(platform) if platform is not None else None
        own = config.extra.get("unauthorized_dm_behavior") if config else None
        default = "ignore" if platform is Platform.EMAIL else self.unauthorized_dm_behavior
        return config_values.choice(own, ("pair", "ignore"), default)

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        form: JsonObject = _json_form(asdict(self))
        return form

    @classmethod
    def from_dict(cls, data: JsonObject) -> Self:
        """Read the JSON form, of any release."""
        inner = config_values.mapping(data.get("gateway"))
        stt = data.get("stt_enabled", config_values.mapping(data.get("stt")).get("enabled"))
        max_sessions = data.get("max_concurrent_sessions", inner.get("max_concurrent_sessions"))
        folder = data.get("sessions_dir")
        triggers = data.get("reset_triggers")
        return cls(
            platforms={
                item: PlatformConfig.from_dict(config, item.value)
                for item, config in _by_platform(data.get("platforms"), dict)
            },
            default_reset_policy=reset_policy(
                config_values.mapping(data.get("default_reset_policy") or data.get("session_reset"))
            ),
            reset_by_type={
                str(name): reset_policy(config_values.mapping(item))
                for name, item in config_values.mapping(data.get("reset_by_type")).items()
            },
            reset_by_platform=dict(_by_platform(data.get("reset_by_platform"), reset_policy)),
            reset_triggers=list(map(str, triggers))
            if isinstance(triggers, list)
            else cls().reset_triggers,
            quick_commands=config_values.mapping(data.get("quick_commands")),
            sessions_dir=Path(folder) if isinstance(folder, str) and folder else cls().sessions_dir,
            max_concurrent_sessions=config_values.number(max_sessions, 0, minimum=0) or None,
            multiplex_profiles=config_values.flag(
                data.get("multiplex_profiles", inner.get("multiplex_profiles")), default=False
            ),
            unauthorized_dm_behavior=config_values.choice(
                data.get("unauthorized_dm_behavior"), ("pair", "ignore"), "pair"
            ),
            streaming=StreamingConfig.from_dict(
                config_values.mapping(data.get("streaming") or inner.get("streaming"))
            ),
            session_store_max_age_days=config_values.number(
                data.get("session_store_max_age_days"), DEFAULT_MAX_AGE_DAYS, minimum=0
            ),
            **_flags(data, stt),
        )


def _json_form(value: Any) -> Any:
    if isinstance(value, dict):
        return {_json_form(name): _json_form(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_form(item) for item in value]
    if isinstance(value, Platform):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _flags(data: JsonObject, stt: Any) -> dict[str, bool]:
    defaults = {
        "always_log_local": True,
        "filter_silence_narration": True,
        "group_sessions_per_user": True,
        "thread_sessions_per_user": False,
    }
    flags = {
        name: config_values.flag(data.get(name), default=item) for name, item in defaults.items()
    }
    return {**flags, "stt_enabled": config_values.flag(stt, default=True)}


def _by_platform(data: Any, read: Any) -> Any:
    """The value of each known platform."""
    for name, item in config_values.mapping(data).items():
        platform = find_platform(name)
        if platform is not None:
            yield platform, read(config_values.mapping(item))


def load_gateway_config() -> GatewayConfig:
    """The configuration of the gateway, under the name that plugins of hermes-agent use."""
    from gateway.process.config_loader import config_of_home  # noqa: PLC0415 - it imports this one

    return config_of_home()
