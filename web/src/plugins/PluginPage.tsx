import { Title } from "@mantine/core";
import { useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { usePluginTabs } from "@/api/queries";
import type { PluginTab } from "@/api/types";
import { isActivePath } from "@/app/tabs";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { NotFound } from "@/components/NotFound";
import classes from "./Plugins.module.css";
import { registry } from "./registry";
import { loadPlugin } from "./scriptLoader";

const REGISTER_TIMEOUT_MS = 2000;

/** The page of the plugin that owns the current path. */
export function PluginPage() {
  const { pathname } = useLocation();
  const { data, error, refetch } = usePluginTabs();
  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingIndicator />;
  const plugin = data.find((one) => isActivePath(one.tab.path, pathname));
  return plugin ? <PluginView key={plugin.name} plugin={plugin} /> : <NotFound />;
}

/** The padding of a page, and a heading unless the plugin has one of its own. */
function PluginFrame({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className={classes.frame}>
      <Title order={1} size="h2" className={classes.heading}>
        {label}
      </Title>
      <div className={classes.content}>{children}</div>
    </div>
  );
}

/** Load a plugin's script, then show its page or the error. */
export function PluginView({ plugin, fallback }: { plugin: PluginTab; fallback?: ReactNode }) {
  useSyncExternalStore(registry.subscribe, registry.version);
  const [problem, setProblem] = useState<Error | null>(null);
  const [attempt, setAttempt] = useState(0);
  const Page = registry.page(plugin.name);
  const isRegistered = Page !== undefined;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt is another run
  useEffect(() => {
    if (isRegistered) return;
    setProblem(null);
    let timer: ReturnType<typeof setTimeout>;
    const reportMissingPage = () =>
      setProblem(new Error(`The plugin ${plugin.label} was loaded but did not register a page.`));
    loadPlugin(plugin).then(() => {
      timer = setTimeout(reportMissingPage, REGISTER_TIMEOUT_MS);
    }, setProblem);
    return () => clearTimeout(timer);
  }, [plugin, isRegistered, attempt]);

  if (plugin.error) return <ErrorPane error={new Error(plugin.error)} />;
  if (Page) {
    return (
      <ErrorBoundary label={plugin.label} fallback={fallback}>
        <PluginFrame label={plugin.label}>
          <Page />
        </PluginFrame>
      </ErrorBoundary>
    );
  }
  if (problem) {
    return (
      <>
        <ErrorPane error={problem} onRetry={() => setAttempt(attempt + 1)} />
        {fallback}
      </>
    );
  }
  return <LoadingIndicator />;
}
