import { amount } from "./format";
import { Medal, tint, useTier } from "./Medal";
import { nextInReach, share } from "./reach";
import type { Achievement } from "./types";
import { useWords } from "./useWords";

/** What is nearest to its next tier. */
export function Reach({ all }: { all: readonly Achievement[] }) {
  const { words } = useWords();
  const found = nextInReach(all);
  if (found.length === 0) return null;
  return (
    <section aria-labelledby="ach-reach">
      <div className="ach-heading">
        <h2 id="ach-reach">{words.closest}</h2>
        <p className="ach-small">{words.closestHelp}</p>
      </div>
      <ul className="ach-reach">
        {found.map((one) => (
          <ReachCard key={one.id} one={one} />
        ))}
      </ul>
    </section>
  );
}

function ReachCard({ one }: { one: Achievement }) {
  const { words, locale } = useWords();
  const next = useTier(one.next_tier);
  const threshold = one.next_threshold ?? 0;
  const missing = amount(Math.max(1, threshold - one.progress), locale);
  return (
    <li className="ach-reach-card ach-tinted" style={tint(next)}>
      <Medal icon={one.icon} tier={one.next_tier} size={46} />
      <div className="ach-reach-words">
        <p className="ach-reach-name">{one.name}</p>
        <p className="ach-small">{words.toGo(missing, amount(threshold, locale), one.unit, next?.name ?? "")}</p>
        <div className="ach-track" aria-hidden="true">
          <div className="ach-fill" style={{ width: `${100 * share(one)}%` }} />
        </div>
      </div>
    </li>
  );
}
