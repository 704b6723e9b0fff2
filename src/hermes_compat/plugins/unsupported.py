"""What plugins of hermes-agent use and Hermes does not have, or has under another name."""

from __future__ import annotations

from typing import Final

from hermes_core.errors import PluginError

PAGE: Final = "docs/reference/plugins-of-hermes-agent.md"
AS_A_TOOL: Final = "register a tool instead (ctx.register_tool)"

UNSUPPORTED_METHODS: Final = {
    "register_context_engine": "Hermes shortens conversations itself",
    "register_auxiliary_task": "Hermes has no auxiliary models; ctx.llm uses the selected model",
    "register_web_search_provider": AS_A_TOOL,
    "register_image_gen_provider": AS_A_TOOL,
    "register_video_gen_provider": AS_A_TOOL,
    "register_browser_provider": AS_A_TOOL,
    "register_tts_provider": f"Hermes does not produce speech; {AS_A_TOOL}",
    "register_dashboard_auth_provider": "the dashboard has its own sign-in",
    "register_slack_action_handler": "Hermes handles the buttons on Slack itself",
}
# By module or package; the longest name that fits counts.
UNSUPPORTED_MODULES: Final = {
    "agent": "the agent of Hermes has another structure; use hooks and ctx",
    "agent.auxiliary_client": "use ctx.llm",
    "tools": "the tools of Hermes have another structure; use ctx.register_tool and "
    "ctx.dispatch_tool",
    "providers": "add a provider with ctx.register_provider",
    "model_tools": "use ctx.dispatch_tool",
    "toolsets": "tools of plugins are always offered; use check_fn of ctx.register_tool",
    "run_agent": "use ctx.llm, or `hermes chat` in another process",
    "hermes_cli.auth": "Hermes has no logins at model providers; secrets are in .env",
    "hermes_cli.config": "use hermes_core.config.file.ConfigFile",
    "gateway.pairing": "access is managed by `hermes pairing` and `hermes people`",
    "gateway.delivery": "use `hermes send`, or the outbox of the store",
    "gateway.hooks": "use ctx.register_hook",
    "gateway.platform_registry": "use ctx.register_platform",
}


class UnsupportedInterfaceError(PluginError, AttributeError):
    """A method of `ctx` that Hermes does not have; `hasattr` is false."""


class UnsupportedModuleError(PluginError, ModuleNotFoundError):
    """A module of hermes-agent that Hermes does not have."""


def refuse_method(name: str) -> UnsupportedInterfaceError:
    """The error for a method of `ctx`; a plain one if the name is unknown."""
    reason = UNSUPPORTED_METHODS.get(name)
    text = f"ctx.{name} is not supported by Hermes"
    return UnsupportedInterfaceError(f"{text}: {reason}. See {PAGE}." if reason else f"{text}.")


def module_reason(name: str) -> str:
    """Why a module is not available; empty if it is not one of hermes-agent."""
    while name:
        if name in UNSUPPORTED_MODULES:
            return UNSUPPORTED_MODULES[name]
        name = name.rpartition(".")[0]
    return ""


def refuse_module(name: str) -> UnsupportedModuleError:
    """The error for a module."""
    text = f"the module {name} of hermes-agent is not available: {module_reason(name)}"
    return UnsupportedModuleError(f"{text}. See {PAGE}.")
