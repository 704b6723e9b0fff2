import type { PluginTab } from "@/api/types";

const loaded = new Map<string, Promise<void>>();

/** Load a plugin's script and style sheet once; rejects if the script cannot be loaded. */
export function loadPlugin(plugin: PluginTab): Promise<void> {
  const pending = loaded.get(plugin.name);
  if (pending) return pending;
  const promise = appendScript(plugin);
  loaded.set(plugin.name, promise);
  promise.catch(() => loaded.delete(plugin.name)); // a retry may succeed
  return promise;
}

function appendScript(plugin: PluginTab): Promise<void> {
  const base = `/dashboard-plugins/${encodeURIComponent(plugin.name)}/`;
  if (plugin.css) document.head.append(createStylesheetLink(assetUrl(base, plugin.css)));
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = assetUrl(base, plugin.entry);
    script.async = true;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error(`Could not load the script of the plugin ${plugin.label}.`));
    document.head.append(script);
  });
}

function assetUrl(base: string, file: string): string {
  return base + file.split("/").map(encodeURIComponent).join("/");
}

function createStylesheetLink(href: string): HTMLLinkElement {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  return link;
}
