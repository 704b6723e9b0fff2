import { useEffect } from "react";
import { usePluginTabs } from "@/api/queries";
import { loadPlugin } from "./scriptLoader";

/** Loads plugins that fill slots; a plugin with only a page is loaded when the page is opened. */
export function SlotPluginLoader() {
  const { data } = usePluginTabs();
  useEffect(() => {
    for (const plugin of data ?? []) {
      const isNeeded = plugin.tab.hidden || plugin.slots.length > 0;
      // A plugin that fails to load leaves its slots empty; the plugins page shows the error.
      if (isNeeded && !plugin.error) loadPlugin(plugin).catch(() => {});
    }
  }, [data]);
  return null;
}
