import { useSyncExternalStore } from "react";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import classes from "./Plugins.module.css";
import { registry } from "./registry";

/** A slot that plugins can fill; one in the column of a page has the page's padding. */
export function Slot({ name, isPadded }: { name: string; isPadded?: boolean }) {
  useSyncExternalStore(registry.subscribe, registry.version);
  return registry.slot(name).map(([plugin, Component]) => {
    const content = (
      <ErrorBoundary key={plugin} label={plugin}>
        <Component />
      </ErrorBoundary>
    );
    return isPadded ? (
      <div key={plugin} className={classes.slot}>
        {content}
      </div>
    ) : (
      content
    );
  });
}
