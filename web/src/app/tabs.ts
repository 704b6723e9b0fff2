import type { PluginTab } from "@/api/types";
import type { Texts } from "@/i18n";

/** An entry of the navigation. */
export interface Tab {
  id: string;
  path: string;
  label: string;
  icon: string;
}

/** The tabs of the house, in their order. */
export function builtIn(names: Texts["general"]["pages"]): Tab[] {
  return [
    { id: "overview", path: "/", label: names.overview, icon: "LayoutDashboard" },
    { id: "chat", path: "/chat", label: names.chat, icon: "MessageSquare" },
    { id: "sessions", path: "/sessions", label: names.sessions, icon: "History" },
    { id: "analytics", path: "/analytics", label: names.analytics, icon: "ChartColumn" },
    { id: "gateway", path: "/gateway", label: names.gateway, icon: "RadioTower" },
    { id: "hooks", path: "/hooks", label: names.hooks, icon: "Webhook" },
    { id: "plugins", path: "/plugins", label: names.plugins, icon: "Puzzle" },
    { id: "settings", path: "/settings", label: names.settings, icon: "Settings" },
  ];
}

/** All tabs: plugins stand where their manifests ask to, and at the end where that place does not exist. */
export function ordered(tabs: Tab[], plugins: PluginTab[]): Tab[] {
  const found = [...tabs];
  for (const plugin of plugins) {
    const { path, position, override, hidden } = plugin.tab;
    if (hidden || override || plugin.error) continue;
    const [side, id] = position.split(":");
    const place = found.findIndex((one) => one.id === id);
    const tab = { id: plugin.name, path, label: plugin.label, icon: plugin.icon };
    const index = place < 0 ? found.length : side === "before" ? place : place + 1;
    found.splice(index, 0, tab);
  }
  return found;
}

/** Whether a tab is the one somebody is looking at. */
export function isHere(path: string, pathname: string): boolean {
  return path === "/" ? pathname === "/" : pathname === path || pathname.startsWith(`${path}/`);
}
