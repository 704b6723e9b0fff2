import { Page } from "@/components/Page";

export default function PluginsPage() {
  return <Page title="Plugins">…</Page>;
}
