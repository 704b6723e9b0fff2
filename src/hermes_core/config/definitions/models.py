"""Settings of models, API keys and the agent."""

from __future__ import annotations

from typing import Final

from hermes_core.config.schema import Setting


def _key(name: str, variable: str, text: str, *, grants: bool = False) -> Setting:
    """A setting with a secret, which is kept in .env."""
    return Setting(
        f"keys.{name}",
        "str",
        "",
        text,
        secret=True,
        secret_variable=variable,
        only_by_hand=grants,
    )


EFFORTS: Final = ("none", "low", "medium", "high")
MODELS_SETTINGS: Final = (
    Setting(
        "llm.model",
        "str",
        "",
        "Default model; if empty, Hermes looks for a local one.",
        is_shared_by_nodes=True,
    ),
    Setting(
        "llm.built_in",
        "choice",
        "auto",
        "Built-in demo model: auto downloads it for a conversation if no other model is found.",
        choices=("auto", "never"),
    ),
    Setting(
        "llm.api",
        "choice",
        "openai",
        "API of the model: openai (compatible chat), responses, anthropic, gemini, local (the "
        "built-in model), or script.",
        choices=("openai", "responses", "anthropic", "gemini", "local", "script"),
    ),
    Setting(
        "llm.base_url",
        "str",
        "",
        "Base URL of the model, e.g. http://127.0.0.1:11434/v1; empty means the provider's own.",
        format="url",
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
        "llm.max_output_tokens",
        "int",
        0,
        "Longest answer in tokens; 0 uses the limit of the model.",
        minimum=0,
        maximum=10000000,
    ),
    Setting(
        "llm.effort",
        "choice",
        "default",
        "How much a model reasons before it answers; default leaves it to the model.",
        choices=("default", *EFFORTS),
    ),
    Setting(
        "llm.max_wait_seconds",
        "int",
        300,
        "Longest pause to wait for when a provider requests one; after a longer request the turn "
        "ends, or the next model in llm.fallbacks answers.",
        minimum=0,
        maximum=86400,
    ),
    Setting(
        "llm.fallbacks",
        "list",
        (),
        "Models to try when the first one fails, e.g. anthropic:MODEL.",
        only_by_hand=True,
    ),
    Setting(
        "llm.key",
        "str",
        "",
        "API key for the model, if it needs its own.",
        secret=True,
        secret_variable="HERMES_LLM_KEY",
    ),
    _key("openai", "OPENAI_API_KEY", "API key for OpenAI."),
    _key("anthropic", "ANTHROPIC_API_KEY", "API key for Anthropic."),
    _key("openrouter", "OPENROUTER_API_KEY", "API key for OpenRouter."),
    _key("brave", "BRAVE_API_KEY", "API key of Brave Search, for web.search."),
    _key("tavily", "TAVILY_API_KEY", "API key of Tavily, for web.search."),
    _key("gemini", "GEMINI_API_KEY", "API key for Google Gemini."),
    _key("xai", "XAI_API_KEY", "API key for xAI."),
    _key("mistral", "MISTRAL_API_KEY", "API key for Mistral."),
    _key("deepseek", "DEEPSEEK_API_KEY", "API key for DeepSeek."),
    _key("groq", "GROQ_API_KEY", "API key for Groq."),
    _key("together", "TOGETHER_API_KEY", "API key for Together AI."),
    _key("cerebras", "CEREBRAS_API_KEY", "API key for Cerebras."),
    _key("moonshot", "MOONSHOT_API_KEY", "API key for Moonshot AI."),
    _key("zai", "ZAI_API_KEY", "API key for Z.ai."),
    _key(
        "telegram",
        "TELEGRAM_BOT_TOKEN",
        "Token of your Telegram bot, from @BotFather.",
        grants=True,
    ),
    _key(
        "telegram_webhook",
        "TELEGRAM_WEBHOOK_SECRET",
        "Secret that Telegram sends with calls to your webhook.",
        grants=True,
    ),
    _key(
        "matrix", "MATRIX_ACCESS_TOKEN", "Access token of the agent's Matrix account.", grants=True
    ),
    _key(
        "email",
        "EMAIL_PASSWORD",
        "Password of the agent's mailbox, often an app password.",
        grants=True,
    ),
    _key("discord", "DISCORD_BOT_TOKEN", "Token of your Discord bot.", grants=True),
    _key("slack_bot", "SLACK_BOT_TOKEN", "Bot token of your Slack app (xoxb-…).", grants=True),
    _key(
        "slack_app", "SLACK_APP_TOKEN", "App-level token of your Slack app (xapp-…).", grants=True
    ),
    _key(
        "transcribe",
        "HERMES_TRANSCRIBE_KEY",
        "API key of the transcription server, if it is not OpenAI's.",
    ),
    _key(
        "webhook",
        "WEBHOOK_SECRET",
        "Secret that signs incoming and outgoing webhook requests.",
        grants=True,
    ),
    _key(
        "api_server",
        "API_SERVER_KEY",
        "Bearer token of the API server; required to start it.",
        grants=True,
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
        is_shared_by_nodes=True,
    ),
    Setting(
        "agent.allowed_hosts",
        "list",
        (),
        "Hosts that commands may reach over HTTP without asking, e.g. docs.python.org or "
        "*.example.org; needs bubblewrap.",
        only_by_hand=True,
    ),
    Setting(
        "agent.environment",
        "list",
        (),
        "Variables that commands get although they look like secrets, e.g. GITHUB_TOKEN or AWS_*.",
        only_by_hand=True,
    ),
    Setting(
        "agent.max_steps",
        "int",
        90,
        "Maximum number of model requests in a turn.",
        minimum=1,
        maximum=10000,
    ),
    Setting(
        "agent.idle_seconds",
        "int",
        900,
        "Seconds without progress after which a turn is stopped (a running tool gets an hour); 0 "
        "means never.",
        minimum=0,
        maximum=86400,
    ),
    Setting(
        "agent.turn_seconds",
        "int",
        14400,
        "Seconds after which a turn is stopped in any case; 0 means never. Time spent waiting for "
        "your answer does not count.",
        minimum=0,
        maximum=604800,
    ),
    Setting(
        "web.search",
        "choice",
        "none",
        "Search service of the tool web_search: your SearXNG server (web.search_url), Brave "
        "(keys.brave) or Tavily (keys.tavily).",
        choices=("none", "searxng", "brave", "tavily"),
        only_by_hand=True,
    ),
    Setting(
        "web.search_url",
        "str",
        "",
        "URL of your SearXNG server, or an alternative URL of the search service.",
        format="url",
        only_by_hand=True,
    ),
    Setting(
        "web.private_hosts",
        "list",
        (),
        "Hosts on this machine or in your network that web_fetch may read, e.g. wiki.lan or "
        "localhost.",
        only_by_hand=True,
    ),
    Setting(
        "agent.automatic_titles",
        "bool",
        True,
        "Whether the model writes a title for a new conversation after the first answer; a title "
        "that you set is never replaced.",
    ),
    Setting(
        "agent.hints",
        "bool",
        True,
        "Whether a line of at most 60 tokens is added to the result of a command that failed the "
        "same way before, with what then worked, and of a file whose change was reverted.",
    ),
    Setting(
        "memory.review_turns",
        "int",
        10,
        "Number of your turns after which the agent reviews the conversation in the background "
        "and updates its memory; 0 means never.",
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
        "tui.notify",
        "choice",
        "bell",
        "What the terminal UI does when a long turn ends or a question waits while another window "
        "has the focus: ring the bell, or send a notification through the terminal (OSC 9).",
        choices=("bell", "notification", "off"),
    ),
    Setting(
        "tui.notify_seconds",
        "int",
        10,
        "How long a turn must take for `tui.notify`.",
        minimum=0,
        maximum=86400,
    ),
    Setting(
        "agent.busy_input",
        "choice",
        "steer",
        "What Enter does while a turn runs: steer the turn, queue for the next one, or interrupt.",
        choices=("steer", "queue", "interrupt"),
        is_shared_by_nodes=True,
    ),
)
