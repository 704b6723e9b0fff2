import { Alert } from "@mantine/core";
import { type ComponentType, useEffect, useState } from "react";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { useTexts } from "@/i18n";

const RETRY_MS = 1000;
const RELOADED_KEY = "hermes-reloaded-for-page";

type Load = () => Promise<{ default: ComponentType }>;

/** A page whose script is loaded on first use. While the server does not answer, it shows that and waits. */
export function lazyPage(load: Load): ComponentType & { preload: () => Promise<void> } {
  let loaded: ComponentType | null = null;
  const fetchPage = async () => {
    loaded ??= (await load()).default;
    sessionStorage.removeItem(RELOADED_KEY);
  };
  function LazyPage() {
    const [Page, setPage] = useState(() => loaded);
    const [isWaiting, setWaiting] = useState(false);
    useEffect(() => {
      const leaving = new AbortController();
      const wait = async () => {
        await fetchPage().catch(async (error) => {
          await waitForServer(() => setWaiting(true), leaving.signal);
          await fetchPage().catch(() => reloadOnce(error));
        });
        if (!leaving.signal.aborted) setPage(() => loaded);
      };
      wait().catch((error) => {
        if (!leaving.signal.aborted) setPage(() => failing(error));
      });
      return () => leaving.abort();
    }, []);
    if (Page) return <Page />;
    return isWaiting ? <WaitingForServer /> : <LoadingIndicator />;
  }
  return Object.assign(LazyPage, { preload: () => fetchPage().catch(() => {}) });
}

/** A page that raises an error, which the route shows. */
function failing(error: unknown): ComponentType {
  return () => {
    throw error;
  };
}

/** Wait until the server answers. */
async function waitForServer(onWait: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await fetch("/favicon.svg", { method: "HEAD", cache: "no-store", signal });
      return;
    } catch {
      onWait();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Reload the tab: the server answers and does not have the script, because it was updated. */
function reloadOnce(error: unknown): Promise<never> {
  if (sessionStorage.getItem(RELOADED_KEY)) throw error;
  sessionStorage.setItem(RELOADED_KEY, "yes");
  window.location.reload();
  return new Promise(() => {});
}

function WaitingForServer() {
  const texts = useTexts().general;
  return (
    <Alert color="yellow" variant="light" m="md" role="status">
      {texts.lostHelp}
    </Alert>
  );
}
