import type { ReactNode } from "react";
import { useTabs } from "@/api/queries";
import { Loaded } from "./PluginPage";
import { Slot } from "./Slot";

/** A page of the house, or that of a plugin which says that it stands in for it. */
export function Overridable({ path, children }: { path: string; children: ReactNode }) {
  const { data } = useTabs();
  const stand = data?.find((one) => one.tab.override === path && !one.error);
  if (stand) return <Loaded plugin={stand} instead={children} />;
  const name = path.split("/")[1] || "overview";
  return (
    <>
      <Slot name={`${name}:top`} />
      {children}
      <Slot name={`${name}:bottom`} />
    </>
  );
}
