import { useContext } from "react";
import { formatNumber } from "./format";
import { CatalogueContext, tint } from "./Medal";
import { useTexts } from "./useTexts";

const RADIUS = 54;
const CIRCUMFERENCE = 2 * Math.PI * RADIUS;

interface Props {
  unlocked: number;
  total: number;
  counts: Record<string, number>;
}

/** The share of unlocked badges as a ring with one arc per tier, highest first. */
export function UnlockRing({ unlocked, total, counts }: Props) {
  const { texts, locale } = useTexts();
  const { tiers } = useContext(CatalogueContext);
  const label = texts.unlockedOf(formatNumber(unlocked, locale), formatNumber(total, locale));
  let turned = 0;
  const arcs = [...tiers].reverse().map((tier) => {
    const length = total > 0 ? ((counts[tier.id] ?? 0) / total) * CIRCUMFERENCE : 0;
    const arc = { tier, length, from: turned };
    turned += length;
    return arc;
  });
  return (
    <div className="ach-ring" role="img" aria-label={label}>
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
            strokeDasharray={`${Math.max(0, length - 1.2)} ${CIRCUMFERENCE}`}
            strokeDashoffset={-from}
          />
        ))}
      </svg>
      <div className="ach-ring-text" aria-hidden="true">
        <b>{formatNumber(unlocked, locale)}</b>
        <span>/ {formatNumber(total, locale)}</span>
        <small>{texts.unlocked}</small>
      </div>
    </div>
  );
}
