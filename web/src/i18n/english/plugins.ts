/** Texts of the plugins page. */
export const plugins = {
  title: "Plugins",
  lead: "Plugins installed on this machine.",
  emptyTitle: "No plugins installed",
  empty: "To install a plugin, copy its folder (with a plugin.yaml file) into the plugins folder of your Hermes home.",
  hooksLabel: "Hooks:",
  dashboard: "adds a page",
  bundled: "bundled",
  error: "Failed to load:",
  restart: "Saved. Restart running Hermes processes to apply the change.",
  requested: (name: string) => `Requested ${name}. Confirm the change in a terminal.`,
  enable: (name: string) => `Enable ${name}`,
};
