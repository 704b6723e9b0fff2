import type { PluginTab } from "@/api/types";
import type { Texts } from "@/i18n";

/** An entry of the navigation. */
export interface Tab {
  id: string;
  path: string;
  label: string;
  icon: string;
}

/** The built-in tabs in order. */
export function builtInTabs(labels: Texts["general"]["pages"]): Tab[] {
  return [
    { id: "overview", path: "/", label: labels.overview, icon: "LayoutDashboard" },
    { id: "chat", path: "/chat", label: labels.chat, icon: "MessageSquare" },
    { id: "sessions", path: "/sessions", label: labels.sessions, icon: "History" },
    { id: "ask", path: "/ask", label: labels.ask, icon: "MessageCircleQuestion" },
    { id: "edits", path: "/edits", label: labels.edits, icon: "FilePen" },
    { id: "analytics", path: "/analytics", label: labels.analytics, icon: "ChartColumn" },
    { id: "memory", path: "/memory", label: labels.memory, icon: "Brain" },
    { id: "schedules", path: "/schedules", label: labels.schedules, icon: "Clock" },
    { id: "gateway", path: "/gateway", label: labels.gateway, icon: "RadioTower" },
    { id: "models", path: "/models", label: labels.models, icon: "Cpu" },
    { id: "mcp", path: "/mcp", label: labels.mcp, icon: "Cable" },
    { id: "hooks", path: "/hooks", label: labels.hooks, icon: "Webhook" },
    { id: "permissions", path: "/permissions", label: labels.permissions, icon: "Shield" },
    { id: "data", path: "/data", label: labels.data, icon: "Database" },
    { id: "logs", path: "/logs", label: labels.logs, icon: "ScrollText" },
    { id: "plugins", path: "/plugins", label: labels.plugins, icon: "Puzzle" },
    { id: "settings", path: "/settings", label: labels.settings, icon: "Settings" },
  ];
}

/** Insert plugin tabs at the positions of their manifests; unknown positions go to the end. */
export function orderTabs(tabs: Tab[], plugins: PluginTab[]): Tab[] {
  const found = [...tabs];
  for (const plugin of plugins) {
    const { path, position, override, hidden } = plugin.tab;
    if (hidden || override || plugin.error) continue;
    const [side, id] = position.split(":");
    const anchor = found.findIndex((one) => one.id === id);
    const tab = { id: plugin.name, path, label: plugin.label, icon: plugin.icon };
    const index = anchor < 0 ? found.length : side === "before" ? anchor : anchor + 1;
    found.splice(index, 0, tab);
  }
  return found;
}

/** Whether a tab's path contains the current path. */
export function isActivePath(path: string, pathname: string): boolean {
  return path === "/" ? pathname === "/" : pathname === path || pathname.startsWith(`${path}/`);
}
