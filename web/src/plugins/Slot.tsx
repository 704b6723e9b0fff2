import { useSyncExternalStore } from "react";
import { Contained } from "@/components/Contained";
import { registry } from "./registry";

/** A place of the page where plugins may put something. */
export function Slot({ name }: { name: string }) {
  useSyncExternalStore(registry.subscribe, registry.version);
  return registry.slot(name).map(([plugin, Component]) => (
    <Contained key={plugin} what={plugin}>
      <Component />
    </Contained>
  ));
}
