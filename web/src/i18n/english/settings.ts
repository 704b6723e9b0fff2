/** Texts of the settings page. */
export const settings = {
  title: "Settings",
  lead: (path: string) => `Stored in ${path}`,
  search: "Search settings",
  origins: {
    default: "default",
    file: "set in the config file",
    environment: "set by an environment variable",
  } as Record<string, string>,
  fromEnvironment: (name: string) => `Set by the environment variable ${name}. Unset it to change the value here.`,
  needsConfirmation: "a change needs confirmation in a terminal",
  requested: (name: string) => `Requested ${name}. Confirm the change in a terminal.`,
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
  pendingTitle: "Confirm this change in a terminal",
  appliedTitle: "The change is in effect",
  kinds: {
    setting: (name: string) => `Setting ${name}`,
    plugin: (name: string) => `Plugin ${name}`,
    job: (name: string) => `Scheduled job ${name}`,
  },
  run: "Nothing has changed yet. Run this command on the machine of the dashboard:",
  expires: (time: string) => `Expires ${time}.`,
  copy: "Copy the command",
  cancel: "Cancel the change",
  dismiss: "Dismiss",
};

/** Texts of the choice of a provider. */
export const provider = {
  title: "Model provider",
  lead: "Use a model of a hosted provider by default. Another endpoint is set with llm.base_url.",
  provider: "Provider",
  names: { anthropic: "Anthropic", openai: "OpenAI", openrouter: "OpenRouter" } as Record<string, string>,
  model: "Model",
  modelHelp: "The provider's name of the model.",
  key: "API key",
  keyHelp: "Stored in the .env file and sent only to this provider. Leave empty to keep the stored key.",
  save: "Use this model",
  saved: (model: string) => `Default model: ${model}.`,
};
