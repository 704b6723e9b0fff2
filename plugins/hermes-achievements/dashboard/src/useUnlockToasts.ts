import { useEffect, useRef } from "react";
import { formatNumber } from "./format";
import { sdk } from "./host/sdk";
import type { AchievementsResponse, Catalogue } from "./types";
import { findNewSteps, isComplete } from "./unlocks";
import { useTexts } from "./useTexts";

const MAX_SEPARATE_TOASTS = 3;

/** Shows a toast for every unlock while the page is open. */
export function useUnlockToasts(response: AchievementsResponse | null, catalogue: Catalogue | null): void {
  const { texts, locale } = useTexts();
  const { showToast } = sdk.useToast();
  const before = useRef<AchievementsResponse | null>(null);

  useEffect(() => {
    if (!response || !catalogue || before.current === response) return;
    const last = before.current;
    before.current = response;
    const count = (value: number) => formatNumber(value, locale);
    if (last && !isComplete(last) && isComplete(response) && response.unlocked_count > 0) {
      showToast({ message: texts.scanDone(count(response.unlocked_count), count(response.total_count)), kind: "good" });
    }
    const found = findNewSteps(last, response);
    if (found.length > MAX_SEPARATE_TOASTS) {
      showToast({ title: texts.manyUnlocksTitle, message: texts.manyUnlocks(count(found.length)), kind: "good" });
      return;
    }
    for (const step of found) {
      const tier = catalogue.tiers.find((one) => one.id === step.tier)?.name ?? step.tier;
      const title = step.is_first ? texts.unlockTitle : texts.tierUpTitle;
      showToast({ title, message: texts.unlockText(step.name, tier), kind: "good" });
    }
  }, [response, catalogue, texts, locale, showToast]);
}
