import { useContext } from "react";
import { amount } from "./format";
import { CatalogueContext, tint } from "./Medal";
import { useWords } from "./useWords";

const RADIUS = 54;
const AROUND = 2 * Math.PI * RADIUS;

interface Props {
  unlocked: number;
  total: number;
  counts: Record<string, number>;
}

/** How many are unlocked, as a ring: an arc for each tier, the highest first. */
export function Ring({ unlocked, total, counts }: Props) {
  const { words, locale } = useWords();
  const { tiers } = useContext(CatalogueContext);
  const said = words.unlockedOf(amount(unlocked, locale), amount(total, locale));
  let turned = 0;
  const arcs = [...tiers].reverse().map((tier) => {
    const length = total > 0 ? ((counts[tier.id] ?? 0) / total) * AROUND : 0;
    const arc = { tier, length, from: turned };
    turned += length;
    return arc;
  });
  return (
    <div className="ach-ring" role="img" aria-label={said}>
      <svg viewBox="0 0 128 128" aria-hidden="true">
        <circle className="ach-ring-ground" cx="64" cy="64" r={RADIUS} />
        {arcs.map(({ tier, length, from }) => (
          <circle
            key={tier.id}
            className="ach-ring-arc ach-tinted"
            style={tint(tier)}
            cx="64"
            cy="64"
            r={RADIUS}
            strokeDasharray={`${Math.max(0, length - 1.2)} ${AROUND}`}
            strokeDashoffset={-from}
          />
        ))}
      </svg>
      <div className="ach-ring-words" aria-hidden="true">
        <b>{amount(unlocked, locale)}</b>
        <span>/ {amount(total, locale)}</span>
        <small>{words.unlocked}</small>
      </div>
    </div>
  );
}
