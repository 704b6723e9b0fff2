import type { PluginTab } from "@/api/types";

const loaded = new Map<string, Promise<void>>();

/** Fetch a plugin's script and style sheet, once; rejects when the script cannot be had. */
export function loadPlugin(plugin: PluginTab): Promise<void> {
  const known = loaded.get(plugin.name);
  if (known) return known;
  const promise = fetchScript(plugin);
  loaded.set(plugin.name, promise);
  promise.catch(() => loaded.delete(plugin.name)); // another try may succeed
  return promise;
}

function fetchScript(plugin: PluginTab): Promise<void> {
  const base = `/dashboard-plugins/${encodeURIComponent(plugin.name)}/`;
  if (plugin.css) document.head.append(stylesheet(addressOf(base, plugin.css)));
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = addressOf(base, plugin.entry);
    script.async = true;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error(`Could not load the script of the plugin ${plugin.label}.`));
    document.head.append(script);
  });
}

function addressOf(base: string, file: string): string {
  return base + file.split("/").map(encodeURIComponent).join("/");
}

function stylesheet(href: string): HTMLLinkElement {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  return link;
}
