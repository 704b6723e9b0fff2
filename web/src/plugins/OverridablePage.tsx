import type { ReactNode } from "react";
import { usePluginTabs } from "@/api/queries";
import { PluginView } from "./PluginPage";
import { Slot } from "./Slot";

/** A built-in page, or the plugin page that overrides it. */
export function OverridablePage({ path, children }: { path: string; children: ReactNode }) {
  const { data } = usePluginTabs();
  const override = data?.find((one) => one.tab.override === path && !one.error);
  if (override) return <PluginView plugin={override} fallback={children} />;
  const name = path.split("/")[1] || "overview";
  return (
    <>
      <Slot name={`${name}:top`} isPadded />
      {children}
      <Slot name={`${name}:bottom`} isPadded />
    </>
  );
}
