import { DashboardLink } from "./DashboardLink";
import { Glyph } from "./Glyph";
import type { Step } from "./types";
import { evidencePath } from "./unlocks";
import { useTexts } from "./useTexts";

/** A link to the message that earned a tier. */
export function EvidenceLink({ step }: { step: Partial<Step> }) {
  const { texts } = useTexts();
  const address = evidencePath(step);
  if (!step.session_id) return null;
  if (!address) return <span className="ach-evidence-deleted">{texts.evidenceDeleted}</span>;
  return (
    <DashboardLink to={address} className="ach-evidence" title={texts.evidence}>
      <Glyph name="message" size={14} />
      <span>{step.title || texts.untitled}</span>
    </DashboardLink>
  );
}
