import { useSyncExternalStore } from "react";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import { registry } from "./registry";

/** A place of the page where plugins may put something. */
export function Slot({ name }: { name: string }) {
  useSyncExternalStore(registry.subscribe, registry.version);
  return registry.slot(name).map(([plugin, Component]) => (
    <ErrorBoundary key={plugin} label={plugin}>
      <Component />
    </ErrorBoundary>
  ));
}
