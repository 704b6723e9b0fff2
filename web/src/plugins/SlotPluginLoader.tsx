import { useEffect } from "react";
import { usePluginTabs } from "@/api/queries";
import { loadPlugin } from "./scriptLoader";

/** Loads plugins that fill places of other pages; those with a page of their own wait until somebody goes there. */
export function SlotPluginLoader() {
  const { data } = usePluginTabs();
  useEffect(() => {
    for (const plugin of data ?? []) {
      const isNeeded = plugin.tab.hidden || plugin.slots.length > 0;
      // One that cannot be loaded leaves its places empty; the page Plugins says what is wrong with it.
      if (isNeeded && !plugin.error) loadPlugin(plugin).catch(() => {});
    }
  }, [data]);
  return null;
}
