import { errorMessage } from "./api";
import { formatNumber } from "./format";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { scanPhase, scanProgress } from "./scanState";
import type { AchievementsFeed } from "./useAchievements";
import { useTexts } from "./useTexts";

/** Buttons that start a scan and report its result. */
export function RescanButtons({ feed }: { feed: AchievementsFeed }) {
  const { texts } = useTexts();
  const scan = useRescan(feed);
  const { isRescanning } = feed;
  return (
    <div className="ach-rescan">
      <button
        type="button"
        className="ach-button ach-button-main"
        disabled={isRescanning}
        aria-busy={isRescanning}
        onClick={() => void scan(false)}
      >
        <Glyph name="refresh" />
        {isRescanning ? texts.rescanning : texts.rescan}
      </button>
      <button
        type="button"
        className="ach-button ach-button-quiet"
        title={texts.rescanAllHelp}
        disabled={isRescanning}
        onClick={() => void scan(true)}
      >
        {texts.rescanAll}
      </button>
      <Refreshing feed={feed} />
    </div>
  );
}

function useRescan(feed: AchievementsFeed) {
  const { texts, locale } = useTexts();
  const { showToast } = sdk.useToast();
  const total = feed.response?.total_count ?? 0;
  return async (full: boolean) => {
    try {
      const found = await feed.rescan(full);
      if (found.waiting_for) showToast(texts.rescanBusy, "info");
      else showToast(texts.rescanned(formatNumber(found.unlocked_count, locale), formatNumber(total, locale)), "good");
    } catch (error) {
      showToast({ title: texts.rescanFailed, message: errorMessage(error), kind: "bad" });
    }
  };
}

/** The progress of an incremental scan. */
function Refreshing({ feed: { response, isRescanning } }: { feed: AchievementsFeed }) {
  const { texts, locale } = useTexts();
  const isRunning = response !== null && scanPhase(response) === "refresh";
  const progress = response && isRunning ? scanProgress(response) : null;
  const text = progress
    ? texts.refreshingOf(formatNumber(progress.done, locale), formatNumber(progress.total, locale))
    : texts.refreshing;
  return (
    <p className="ach-refreshing" role="status">
      {(isRunning || isRescanning) && text}
    </p>
  );
}
