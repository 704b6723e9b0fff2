"""Platform names; plugins add theirs."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

API_KEY_USER: Final = "key:{name}"  # the user ID of a request with a key of `hermes api-keys`


class Platform(Enum):
    """A platform; its value is the name in files and keys."""

    LOCAL = "local"
    TELEGRAM = "telegram"
    DISCORD = "discord"
    WHATSAPP = "whatsapp"
    WHATSAPP_CLOUD = "whatsapp_cloud"
    SLACK = "slack"
    SIGNAL = "signal"
    MATTERMOST = "mattermost"
    MATRIX = "matrix"
    HOMEASSISTANT = "homeassistant"
    EMAIL = "email"
    SMS = "sms"
    DINGTALK = "dingtalk"
    API_SERVER = "api_server"
    WEBHOOK = "webhook"
    MSGRAPH_WEBHOOK = "msgraph_webhook"
    FEISHU = "feishu"
    WECOM = "wecom"
    WECOM_CALLBACK = "wecom_callback"
    WEIXIN = "weixin"
    BLUEBUBBLES = "bluebubbles"
    QQBOT = "qqbot"
    YUANBAO = "yuanbao"
    RELAY = "relay"

    @classmethod
    def registered(cls, name: str) -> Platform:
        """The platform with a name, created if it is new (of a plugin, loaded or not)."""
        try:
            return cls(name)
        except ValueError:
            if not name.isidentifier() or name != name.lower():
                raise
            member: Any = object.__new__(cls)
            member._name_, member._value_ = name.upper(), name
            cls._member_map_[member._name_] = member
            cls._value2member_map_[name] = member
            cls._member_names_.append(member._name_)
            return cls(name)
