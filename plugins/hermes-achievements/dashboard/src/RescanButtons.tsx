import { wordsOf } from "./api";
import { amount } from "./format";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { progressOf, scanningOf } from "./scanning";
import type { Followed } from "./useAchievements";
import { useWords } from "./useWords";

/** Scan now; says that it runs, and how it went. */
export function RescanButtons({ followed }: { followed: Followed }) {
  const { words } = useWords();
  const scan = useRescan(followed);
  const { isRescanning } = followed;
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
        {isRescanning ? words.rescanning : words.rescan}
      </button>
      <button
        type="button"
        className="ach-button ach-button-quiet"
        title={words.rescanAllHelp}
        disabled={isRescanning}
        onClick={() => void scan(true)}
      >
        {words.rescanAll}
      </button>
      <Refreshing followed={followed} />
    </div>
  );
}

function useRescan(followed: Followed) {
  const { words, locale } = useWords();
  const { showToast } = sdk.useToast();
  const total = followed.answer?.total_count ?? 0;
  return async (full: boolean) => {
    try {
      const found = await followed.rescan(full);
      if (found.waiting_for) showToast(words.rescanBusy, "info");
      else showToast(words.rescanned(amount(found.unlocked_count, locale), amount(total, locale)), "good");
    } catch (error) {
      showToast({ title: words.rescanFailed, message: wordsOf(error), kind: "bad" });
    }
  };
}

/** A scan of what is new hides nothing: it is only mentioned. */
function Refreshing({ followed: { answer, isRescanning } }: { followed: Followed }) {
  const { words, locale } = useWords();
  const isRunning = answer !== null && scanningOf(answer) === "refresh";
  const progress = answer && isRunning ? progressOf(answer) : null;
  const text = progress
    ? words.refreshingOf(amount(progress.done, locale), amount(progress.total, locale))
    : words.refreshing;
  return (
    <p className="ach-refreshing" role="status">
      {(isRunning || isRescanning) && text}
    </p>
  );
}
