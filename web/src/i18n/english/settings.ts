/** Words of the settings page. */
export const settings = {
  title: "Settings",
  lead: (path: string) => `Kept in ${path}`,
  search: "Find a setting",
  default: "default",
  origins: { default: "default", file: "from the file", environment: "from the environment" } as Record<string, string>,
  fromEnvironment: (name: string) => `The environment variable ${name} decides; it cannot be changed here.`,
  onlyByHand: (name: string) =>
    `It says what is run or who is let in, so it is set in a terminal: hermes config set ${name} …`,
  reset: "Back to the default",
  saved: (name: string) => `${name} is saved.`,
  secretSet: "It is set. It is never shown; type to replace it.",
  secretUnset: "Not set.",
  nothingTitle: "No setting fits",
  nothing: "Look for another word.",
  list: "One on each line",
};
