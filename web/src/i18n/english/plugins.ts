/** Words of the plugins page. */
export const plugins = {
  title: "Plugins",
  lead: "What extends Hermes on this machine.",
  emptyTitle: "No plugins",
  empty:
    "A plugin is a folder with a plugin.yaml below the plugins folder of Hermes. The handbook tells how to write one.",
  hooksLabel: "listens to",
  dashboard: "has a page here",
  bundled: "comes with Hermes",
  error: "It could not be loaded:",
  restart: "Running processes take it up when they start again.",
  switchOn: (name: string) => `Switch ${name} on`,
};
