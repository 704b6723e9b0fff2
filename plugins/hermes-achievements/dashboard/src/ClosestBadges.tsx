import { formatNumber } from "./format";
import { Medal, tint, useTier } from "./Medal";
import { closestBadges, progressShare } from "./tierProgress";
import type { Achievement } from "./types";
import { useTexts } from "./useTexts";

/** The badges closest to their next tier. */
export function ClosestBadges({ all }: { all: readonly Achievement[] }) {
  const { texts } = useTexts();
  const found = closestBadges(all);
  if (found.length === 0) return null;
  return (
    <section aria-labelledby="ach-closest">
      <div className="ach-heading">
        <h2 id="ach-closest">{texts.closest}</h2>
        <p className="ach-small">{texts.closestHelp}</p>
      </div>
      <ul className="ach-closest">
        {found.map((one) => (
          <ClosestBadgeCard key={one.id} one={one} />
        ))}
      </ul>
    </section>
  );
}

function ClosestBadgeCard({ one }: { one: Achievement }) {
  const { texts, locale } = useTexts();
  const next = useTier(one.next_tier);
  const threshold = one.next_threshold ?? 0;
  const missing = formatNumber(Math.max(1, threshold - one.progress), locale);
  return (
    <li className="ach-closest-card ach-tinted" style={tint(next)}>
      <Medal icon={one.icon} tier={one.next_tier} size={46} />
      <div className="ach-closest-text">
        <p className="ach-closest-name">{one.name}</p>
        <p className="ach-small">{texts.toGo(missing, formatNumber(threshold, locale), one.unit, next?.name ?? "")}</p>
        <div className="ach-track" aria-hidden="true">
          <div className="ach-fill" style={{ width: `${100 * progressShare(one)}%` }} />
        </div>
      </div>
    </li>
  );
}
