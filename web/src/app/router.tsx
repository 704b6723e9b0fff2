import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  parseSearchWith,
  stringifySearchWith,
} from "@tanstack/react-router";
import { ErrorPane } from "@/components/ErrorPane";
import { OverridablePage } from "@/plugins/OverridablePage";
import { PluginPage } from "@/plugins/PluginPage";
import { lazyPage } from "./lazyPage";
import { Shell } from "./Shell";

const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({ component: Shell });

/** Errors of a page are shown inside the shell, so navigation keeps working. */
const errorComponent = ({ error, reset }: { error: unknown; reset: () => void }) => (
  <ErrorPane error={error as Error} onRetry={reset} />
);

/** The built-in pages, loaded on first use. A plugin can override a page. */
const PAGES = [
  { path: "/", load: () => import("@/pages/overview/OverviewPage") },
  // One route with and without a session id, so that the composer keeps its state when a session is created.
  { path: "/chat/{-$sessionId}", load: () => import("@/pages/chat/ChatPage") },
  { path: "/sessions", load: () => import("@/pages/sessions/SessionsPage") },
  { path: "/sessions/$sessionId", load: () => import("@/pages/transcript/TranscriptPage") },
  { path: "/ask", load: () => import("@/pages/ask/AskPage") },
  { path: "/edits", load: () => import("@/pages/edits/EditsPage") },
  { path: "/analytics", load: () => import("@/pages/analytics/AnalyticsPage") },
  { path: "/memory", load: () => import("@/pages/memory/MemoryPage") },
  { path: "/schedules", load: () => import("@/pages/schedules/SchedulesPage") },
  { path: "/gateway", load: () => import("@/pages/gateway/GatewayPage") },
  { path: "/models", load: () => import("@/pages/models/ModelsPage") },
  { path: "/mcp", load: () => import("@/pages/mcp/McpPage") },
  { path: "/hooks", load: () => import("@/pages/hooks/HooksPage") },
  { path: "/permissions", load: () => import("@/pages/permissions/PermissionsPage") },
  { path: "/data", load: () => import("@/pages/data/DataPage") },
  { path: "/logs", load: () => import("@/pages/logs/LogsPage") },
  { path: "/plugins", load: () => import("@/pages/plugins/PluginsPage") },
  { path: "/settings", load: () => import("@/pages/settings/SettingsPage") },
] as const;

const pageRoutes = PAGES.map(({ path, load }) => {
  const Page = lazyPage(load);
  return createRoute({
    getParentRoute: () => rootRoute,
    path,
    validateSearch: (search: Record<string, unknown>) => search,
    errorComponent,
    component: Object.assign(
      () => (
        <OverridablePage path={path.split("/{")[0] ?? path}>
          <Page />
        </OverridablePage>
      ),
      { preload: Page.preload },
    ),
  });
});

const pluginRoute = createRoute({ getParentRoute: () => rootRoute, path: "$", component: PluginPage, errorComponent });

/** The router of the page. */
export function createAppRouter(client: QueryClient) {
  return createRouter({
    routeTree: rootRoute.addChildren([...pageRoutes, pluginRoute]),
    context: { client },
    // Search parameters stay plain strings: `day=7` and `q=true`, without quotation marks.
    parseSearch: parseSearchWith((text) => text),
    stringifySearch: stringifySearchWith(JSON.stringify),
    defaultPreload: "intent",
    // A transcript scrolls itself: to a message, or to the place that is being read while others are added above it.
    scrollRestoration: ({ location }) => !location.pathname.startsWith("/sessions/"),
  });
}
