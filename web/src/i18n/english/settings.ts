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
  onlyByHand: (name: string) =>
    `Security-sensitive: can only be changed from the terminal (hermes config set ${name} VALUE).`,
  reset: "Reset to default",
  saved: (name: string) => `Saved ${name}.`,
  secretSet: "Set and hidden. Type to replace the value.",
  secretUnset: "Not set.",
  nothingTitle: "No matching settings",
  nothing: "Try another search term.",
  list: "One entry per line",
};
