import { useEffect, useState } from "react";
import { formatDuration, formatNumber } from "./format";
import { addSample, estimateSecondsLeft, type Sample, scanProgress } from "./scanState";
import type { AchievementsResponse } from "./types";
import { useTexts } from "./useTexts";

/** The progress of the first scan; badges appear below during the scan. */
export function ScanBanner({ response }: { response: AchievementsResponse }) {
  const { texts, locale } = useTexts();
  const progress = scanProgress(response);
  const left = useTimeLeft(progress?.done ?? 0, progress?.total ?? 0, progress?.secondsLeft ?? null);
  const count = (value: number) => formatNumber(value, locale);
  const percent = progress?.percent ?? 0;
  return (
    <section className="ach-banner" role="status">
      <div className="ach-banner-text">
        <b>{texts.scanTitle}</b>
        <span className="ach-banner-count">
          {progress ? texts.scanned(count(progress.done), count(progress.total), String(percent)) : texts.scanStarting}
        </span>
        {progress && left !== null && <span className="ach-small">{texts.timeLeft(formatDuration(left))}</span>}
      </div>
      <div
        className="ach-track"
        role="progressbar"
        aria-label={texts.scanProgress}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={progress ? percent : undefined}
        data-waiting={!progress}
      >
        <div className="ach-fill" style={{ width: `${percent}%` }} />
      </div>
      {response.unlocked_count > 0 && <p className="ach-small">{texts.foundSoFar(count(response.unlocked_count))}</p>}
    </section>
  );
}

/** The server's estimate of the time left, or one from the observed speed. */
function useTimeLeft(done: number, total: number, serverEstimate: number | null): number | null {
  const [samples, setSamples] = useState<Sample[]>([]);
  useEffect(() => {
    setSamples((known) => addSample(known, { at: performance.now() / 1000, done }));
  }, [done]);
  return serverEstimate ?? estimateSecondsLeft(samples, total);
}
