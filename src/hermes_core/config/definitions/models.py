"""Settings of models, API keys and the agent."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting

MODELS_SETTINGS: Final = (
    Setting("llm.model", "str", "", "Default model; empty looks for a local one."),
    Setting(
        "llm.api",
        "choice",
        "openai",
        "API of the model: OpenAI-compatible, Anthropic, the built-in model, or a script.",
        choices=("openai", "anthropic", "local", "script"),
    ),
    Setting(
        "llm.base_url",
        "str",
        "",
        "Base URL of the model, e.g. http://127.0.0.1:11434/v1; empty means the provider's own.",
        only_by_hand=True,
    ),
    Setting(
        "llm.window",
        "int",
        0,
        "Context window in tokens; 0 uses the model's known size.",
        minimum=0,
        maximum=100000000,
    ),
    Setting(
        "llm.fallbacks", "list", (), "Models to try when the first one fails, e.g. anthropic:MODEL."
    ),
    Setting(
        "llm.key",
        "str",
        "",
        "API key for the model, if it has one of its own.",
        secret=True,
        secret_variable="HERMES_LLM_KEY",
    ),
    Setting(
        "keys.openai",
        "str",
        "",
        "API key for OpenAI.",
        secret=True,
        secret_variable="OPENAI_API_KEY",
    ),
    Setting(
        "keys.anthropic",
        "str",
        "",
        "API key for Anthropic.",
        secret=True,
        secret_variable="ANTHROPIC_API_KEY",
    ),
    Setting(
        "keys.openrouter",
        "str",
        "",
        "API key for OpenRouter.",
        secret=True,
        secret_variable="OPENROUTER_API_KEY",
    ),
    Setting(
        "keys.telegram",
        "str",
        "",
        "Token of your Telegram bot, from @BotFather.",
        secret=True,
        secret_variable="TELEGRAM_BOT_TOKEN",
    ),
    Setting(
        "keys.telegram_webhook",
        "str",
        "",
        "Secret that Telegram sends with calls to your webhook.",
        secret=True,
        secret_variable="TELEGRAM_WEBHOOK_SECRET",
    ),
    Setting(
        "keys.matrix",
        "str",
        "",
        "Access token of the agent's Matrix account.",
        secret=True,
        secret_variable="MATRIX_ACCESS_TOKEN",
    ),
    Setting(
        "keys.discord",
        "str",
        "",
        "Token of your Discord bot.",
        secret=True,
        secret_variable="DISCORD_BOT_TOKEN",
    ),
    Setting(
        "keys.slack_bot",
        "str",
        "",
        "Bot token of your Slack app (xoxb-…).",
        secret=True,
        secret_variable="SLACK_BOT_TOKEN",
    ),
    Setting(
        "keys.slack_app",
        "str",
        "",
        "App-level token of your Slack app (xapp-…).",
        secret=True,
        secret_variable="SLACK_APP_TOKEN",
    ),
    Setting(
        "keys.transcribe",
        "str",
        "",
        "API key of the transcription server, if it is not OpenAI's.",
        secret=True,
        secret_variable="HERMES_TRANSCRIBE_KEY",
    ),
    Setting(
        "keys.webhook",
        "str",
        "",
        "Secret that signs incoming and outgoing webhook requests.",
        secret=True,
        secret_variable="WEBHOOK_SECRET",
    ),
    Setting(
        "keys.api_server",
        "str",
        "",
        "Bearer token of the API server; required to start it.",
        secret=True,
        secret_variable="API_SERVER_KEY",
    ),
    Setting(
        "agent.approvals",
        "choice",
        "workspace",
        "What the agent may do without asking: read only (plan), work inside the folder, or "
        "everything that is not forbidden.",
        choices=("plan", "workspace", "full"),
        old_choices=(("read_only", "plan"),),
        only_by_hand=True,
    ),
    Setting(
        "memory.review_turns",
        "int",
        10,
        "Number of your turns after which the agent reviews the conversation in the "
        "background and updates its memory; 0 never.",
        minimum=0,
        maximum=1000,
    ),
    Setting(
        "tui.theme",
        "choice",
        "dark",
        "Colors of the full-screen terminal UI; Ctrl+T switches them.",
        choices=("dark", "light"),
    ),
    Setting(
        "agent.busy_input",
        "choice",
        "steer",
        "What Enter does while a turn runs: steer the turn, queue for the next one, or interrupt.",
        choices=("steer", "queue", "interrupt"),
    ),
)
