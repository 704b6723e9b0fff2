import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  parseSearchWith,
  stringifySearchWith,
} from "@tanstack/react-router";
import { ErrorPane } from "@/components/ErrorPane";
import { OverridablePage } from "@/plugins/OverridablePage";
import { PluginPage } from "@/plugins/PluginPage";
import { Shell } from "./Shell";

const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({ component: Shell });

/** What breaks on a page stays on it; the way to the others is around it. */
const errorComponent = ({ error, reset }: { error: unknown; reset: () => void }) => (
  <ErrorPane error={error as Error} onRetry={reset} />
);

/** The pages of the house. A page is fetched when somebody first goes there; a plugin may stand in for it. */
const PAGES = [
  { path: "/", load: () => import("@/pages/overview/OverviewPage") },
  // One page with and without a conversation: what is typed stays when the first message gives it a name.
  { path: "/chat/{-$sessionId}", load: () => import("@/pages/chat/ChatPage") },
  { path: "/sessions", load: () => import("@/pages/sessions/SessionsPage") },
  { path: "/sessions/$sessionId", load: () => import("@/pages/transcript/TranscriptPage") },
  { path: "/analytics", load: () => import("@/pages/analytics/AnalyticsPage") },
  { path: "/gateway", load: () => import("@/pages/gateway/GatewayPage") },
  { path: "/hooks", load: () => import("@/pages/hooks/HooksPage") },
  { path: "/plugins", load: () => import("@/pages/plugins/PluginsPage") },
  { path: "/settings", load: () => import("@/pages/settings/SettingsPage") },
] as const;

const pageRoutes = PAGES.map(({ path, load }) => {
  const Page = lazyRouteComponent(load as () => Promise<{ default: () => React.ReactNode }>);
  return createRoute({
    getParentRoute: () => rootRoute,
    path,
    validateSearch: (search: Record<string, unknown>) => search,
    errorComponent,
    component: () => (
      <OverridablePage path={path.split("/{")[0] ?? path}>
        <Page />
      </OverridablePage>
    ),
  });
});

const pluginRoute = createRoute({ getParentRoute: () => rootRoute, path: "$", component: PluginPage, errorComponent });

/** The router of the page. */
export function createAppRouter(client: QueryClient) {
  return createRouter({
    routeTree: rootRoute.addChildren([...pageRoutes, pluginRoute]),
    context: { client },
    // Words of an address stay as they are written: `day=7` and `q=true`, without quotation marks.
    parseSearch: parseSearchWith((text) => text),
    stringifySearch: stringifySearchWith(JSON.stringify),
    defaultPreload: "intent",
    scrollRestoration: true,
  });
}
