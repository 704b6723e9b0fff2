/** Texts of the plugins page. */
export const plugins = {
  title: "Plugins",
  lead: "Plugins installed on this machine.",
  emptyTitle: "No plugins installed",
  empty: "To install a plugin, run hermes plugins install with its folder, git URL or package name in a terminal.",
  hooksLabel: "Hooks:",
  dashboard: "adds a page",
  bundled: "bundled",
  error: "Failed to load:",
  restart: "Saved. Restart running Hermes processes to apply the change.",
  requested: (name: string) => `Requested ${name}. Confirm the change in a terminal.`,
  enable: (name: string) => `Enable ${name}`,
};
