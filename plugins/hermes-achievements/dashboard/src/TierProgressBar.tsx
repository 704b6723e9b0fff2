import { formatNumber } from "./format";
import { tint, useTier } from "./Medal";
import { progressShare } from "./tierProgress";
import type { Achievement } from "./types";
import { useTexts } from "./useTexts";

/** Progress to the next tier. */
export function TierProgressBar({ one }: { one: Achievement }) {
  const { texts, locale } = useTexts();
  const next = useTier(one.next_tier);
  const count = (value: number) => formatNumber(value, locale);
  if (one.next_threshold === null) {
    return (
      <div className="ach-progress">
        <div className="ach-progress-text">
          <span>{texts.progressDone(count(one.progress), one.unit)}</span>
          <span className="ach-complete">{texts.complete}</span>
        </div>
      </div>
    );
  }
  const tier = next?.name ?? one.next_tier ?? "";
  return (
    <div className="ach-progress ach-tinted" style={tint(next)}>
      <div className="ach-progress-text">
        <span>{texts.progress(count(one.progress), count(one.next_threshold), one.unit)}</span>
        <span className="ach-next">{tier}</span>
      </div>
      <div
        className="ach-track"
        role="progressbar"
        aria-label={texts.progressLabel(one.name, tier)}
        aria-valuemin={0}
        aria-valuemax={one.next_threshold}
        aria-valuenow={Math.min(one.progress, one.next_threshold)}
      >
        <div className="ach-fill" style={{ width: `${100 * progressShare(one)}%` }} />
      </div>
    </div>
  );
}
