/** Texts of the settings page. */
export const settings = {
  title: "Settings",
  lead: (path: string) => `Stored in ${path}`,
  search: "Search settings",
  advanced: "Show advanced settings",
  groupsLabel: "Groups of settings",
  groups: {
    model: { title: "Model", help: "Which model answers, and what happens if it fails." },
    keys: { title: "API keys", help: "Keys are stored in the .env file and never shown." },
    permissions: { title: "Permissions", help: "What the agent may do without asking." },
    agent: { title: "Agent", help: "How the agent works, searches the web and remembers." },
    chats: { title: "Chat apps", help: "Platforms, conversations in chats, voice messages." },
    budgets: { title: "Budgets", help: "Limits for chats and scheduled jobs." },
    history: { title: "History", help: "How long conversations and files are kept, and what is imported." },
    files: { title: "Checkpoints", help: "Copies of your files, to undo changes made by the agent." },
    display: { title: "Display", help: "Colors, times and achievements." },
    dashboard: { title: "Dashboard", help: "Where this page is served, and who can reach it." },
    other: { title: "Other", help: "Storage, logs and other internals." },
  },
  origins: {
    default: "default",
    file: "set in the config file",
    environment: "set by an environment variable",
  } as Record<string, string>,
  fromEnvironment: (name: string) => `Set by the environment variable ${name}. Unset it to change the value here.`,
  needsConfirmation: "a change needs confirmation in a terminal",
  requested: (name: string) => `Requested ${name}. The command to confirm it is at the top of the page.`,
  reset: "Reset to default",
  saved: (name: string) => `Saved ${name}.`,
  secretSet: "Set and hidden. Type to replace the value.",
  secretUnset: "Not set.",
  nothingTitle: "No matching settings",
  nothing: "Try another search term.",
  list: "One entry per line",
};

/** Texts of changes that wait for a confirmation in a terminal. */
export const pendingChanges = {
  label: "Changes to confirm",
  pendingTitle: (count: number) =>
    count === 1 ? "Confirm this change in a terminal" : `Confirm these ${count} changes in a terminal`,
  appliedTitle: (count: number) => (count === 1 ? "The change is in effect" : `${count} changes are in effect`),
  kinds: {
    setting: (name: string) => `Setting ${name}`,
    plugin: (name: string) => `Plugin ${name}`,
    job: (name: string) => `Scheduled job ${name}`,
    platform: (name: string) => `Option ${name}`,
    pairing: (name: string) => `Access of ${name}`,
    role: (name: string) => `Role of ${name}`,
    webhook_route: (name: string) => `Webhook route ${name}`,
    mcp_server: (name: string) => `MCP server ${name}`,
  },
  run: "Nothing has changed yet. Run this command on the machine that runs the dashboard:",
  expires: (time: string) => `Expires ${time}.`,
  copy: "Copy the command",
  cancel: "Cancel",
  cancelOf: (name: string) => `Cancel the change: ${name}`,
  dismiss: "Dismiss",
  dismissOf: (name: string) => `Dismiss: ${name}`,
};

/** Texts of the choice of a provider. */
export const provider = {
  title: "Model provider",
  lead: "Use a hosted model by default. For another endpoint, set llm.base_url.",
  provider: "Provider",
  names: { anthropic: "Anthropic", openai: "OpenAI", openrouter: "OpenRouter" } as Record<string, string>,
  model: "Model",
  modelHelp: "The provider's name for the model.",
  key: "API key",
  keyHelp: "Stored in the .env file and sent only to this provider. Leave empty to keep the stored key.",
  save: "Use this model",
  saved: (model: string) => `Default model: ${model}.`,
};
