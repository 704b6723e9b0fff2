import { Page } from "@/components/Page";

export default function HooksPage() {
  return <Page title="Hooks">…</Page>;
}
