import { useEffect, useState } from "react";
import { amount, span } from "./format";
import { observed, progressOf, type Sample, secondsLeft } from "./scanning";
import type { Answer } from "./types";
import { useWords } from "./useWords";

/** How far the first scan is; badges appear below while it runs. */
export function ScanBanner({ answer }: { answer: Answer }) {
  const { words, locale } = useWords();
  const progress = progressOf(answer);
  const left = useTimeLeft(progress?.done ?? 0, progress?.total ?? 0, progress?.secondsLeft ?? null);
  const count = (value: number) => amount(value, locale);
  const percent = progress?.percent ?? 0;
  return (
    <section className="ach-banner" role="status">
      <div className="ach-banner-words">
        <b>{words.scanTitle}</b>
        <span className="ach-banner-count">
          {progress ? words.scanned(count(progress.done), count(progress.total), String(percent)) : words.scanStarting}
        </span>
        {progress && left !== null && <span className="ach-small">{words.timeLeft(span(left))}</span>}
      </div>
      <div
        className="ach-track"
        role="progressbar"
        aria-label={words.scanProgress}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={progress ? percent : undefined}
        data-waiting={!progress}
      >
        <div className="ach-fill" style={{ width: `${percent}%` }} />
      </div>
      {answer.unlocked_count > 0 && <p className="ach-small">{words.foundSoFar(count(answer.unlocked_count))}</p>}
    </section>
  );
}

/** The scan's own guess, or one from the speed that was seen here. */
function useTimeLeft(done: number, total: number, said: number | null): number | null {
  const [samples, setSamples] = useState<Sample[]>([]);
  useEffect(() => {
    setSamples((known) => observed(known, { at: performance.now() / 1000, done }));
  }, [done]);
  return said ?? secondsLeft(samples, total);
}
