import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { BackupsPanel } from "./BackupsPanel";
import { ImportsPanel } from "./ImportsPanel";

/** Backups, and imports from other agents. */
export default function DataPage() {
  const texts = useTexts().data;
  return (
    <Page title={texts.title} lead={texts.lead}>
      <BackupsPanel />
      <ImportsPanel />
    </Page>
  );
}
