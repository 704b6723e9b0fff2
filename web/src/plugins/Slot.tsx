import { useSyncExternalStore } from "react";
import { ErrorBoundary } from "@/components/ErrorBoundary";
import { registry } from "./registry";

/** A slot that plugins can fill. */
export function Slot({ name }: { name: string }) {
  useSyncExternalStore(registry.subscribe, registry.version);
  return registry.slot(name).map(([plugin, Component]) => (
    <ErrorBoundary key={plugin} label={plugin}>
      <Component />
    </ErrorBoundary>
  ));
}
