import { useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { useTabs } from "@/api/queries";
import type { PluginTab } from "@/api/types";
import { isHere } from "@/app/tabs";
import { Contained } from "@/components/Contained";
import { ErrorPane } from "@/components/ErrorPane";
import { NotFound } from "@/components/NotFound";
import { Waiting } from "@/components/Waiting";
import { loadPlugin } from "./loading";
import { registry } from "./registry";

const PATIENCE_MS = 2000;

/** The page of whichever plugin has this address. */
export function PluginPage() {
  const { pathname } = useLocation();
  const { data, error, refetch } = useTabs();
  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data) return <Waiting />;
  const plugin = data.find((one) => isHere(one.tab.path, pathname));
  return plugin ? <Loaded key={plugin.name} plugin={plugin} /> : <NotFound />;
}

/** A plugin's page: its script is fetched, then its component is shown, or the reason why not. */
export function Loaded({ plugin, instead }: { plugin: PluginTab; instead?: ReactNode }) {
  useSyncExternalStore(registry.subscribe, registry.version);
  const [problem, setProblem] = useState<Error | null>(null);
  const [attempt, setAttempt] = useState(0);
  const Page = registry.page(plugin.name);
  const isThere = Page !== undefined;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt is another run
  useEffect(() => {
    if (isThere) return;
    setProblem(null);
    let timer: ReturnType<typeof setTimeout>;
    const complain = () => setProblem(new Error(`The plugin ${plugin.label} was loaded but did not register a page.`));
    loadPlugin(plugin).then(() => {
      timer = setTimeout(complain, PATIENCE_MS);
    }, setProblem);
    return () => clearTimeout(timer);
  }, [plugin, isThere, attempt]);

  if (plugin.error) return <ErrorPane error={new Error(plugin.error)} />;
  if (Page) {
    return (
      <Contained what={plugin.label} instead={instead}>
        <Page />
      </Contained>
    );
  }
  if (problem) {
    return (
      <>
        <ErrorPane error={problem} onRetry={() => setAttempt(attempt + 1)} />
        {instead}
      </>
    );
  }
  return <Waiting />;
}
