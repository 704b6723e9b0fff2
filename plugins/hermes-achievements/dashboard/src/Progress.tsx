import { amount } from "./format";
import { tint, useTier } from "./Medal";
import { share } from "./reach";
import type { Achievement } from "./types";
import { useWords } from "./useWords";

/** How far it is to the next tier. */
export function Progress({ one }: { one: Achievement }) {
  const { words, locale } = useWords();
  const next = useTier(one.next_tier);
  const count = (value: number) => amount(value, locale);
  if (one.next_threshold === null) {
    return (
      <div className="ach-progress">
        <div className="ach-progress-words">
          <span>{words.progressDone(count(one.progress), one.unit)}</span>
          <span className="ach-complete">{words.complete}</span>
        </div>
      </div>
    );
  }
  const tier = next?.name ?? one.next_tier ?? "";
  return (
    <div className="ach-progress ach-tinted" style={tint(next)}>
      <div className="ach-progress-words">
        <span>{words.progress(count(one.progress), count(one.next_threshold), one.unit)}</span>
        <span className="ach-next">{tier}</span>
      </div>
      <div
        className="ach-track"
        role="progressbar"
        aria-label={words.progressLabel(one.name, tier)}
        aria-valuemin={0}
        aria-valuemax={one.next_threshold}
        aria-valuenow={Math.min(one.progress, one.next_threshold)}
      >
        <div className="ach-fill" style={{ width: `${100 * share(one)}%` }} />
      </div>
    </div>
  );
}
