import { Anchor } from "./Anchor";
import { Glyph } from "./Glyph";
import type { Step } from "./types";
import { addressOf } from "./unlocks";
import { useWords } from "./useWords";

/** The conversation that earned something; opens at the message. */
export function Evidence({ step }: { step: Partial<Step> }) {
  const { words } = useWords();
  const address = addressOf(step);
  if (!step.session_id) return null;
  if (!address) return <span className="ach-gone">{words.evidenceDeleted}</span>;
  return (
    <Anchor to={address} className="ach-evidence" title={words.evidence}>
      <Glyph name="message" size={14} />
      <span>{step.title || words.untitled}</span>
    </Anchor>
  );
}
