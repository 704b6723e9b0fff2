import { Page } from "@/components/Page";

export default function GatewayPage() {
  return <Page title="Gateway">…</Page>;
}
