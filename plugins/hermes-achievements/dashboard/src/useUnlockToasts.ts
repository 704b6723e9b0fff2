import { useEffect, useRef } from "react";
import { amount } from "./format";
import { sdk } from "./host/sdk";
import type { Answer, Catalogue } from "./types";
import { isComplete, newSteps } from "./unlocks";
import { useWords } from "./useWords";

const MOST_APART = 3;

/** Says what was earned while the page is open; what was there before it is not news. */
export function useUnlockToasts(answer: Answer | null, catalogue: Catalogue | null): void {
  const { words, locale } = useWords();
  const { showToast } = sdk.useToast();
  const before = useRef<Answer | null>(null);

  useEffect(() => {
    if (!answer || !catalogue || before.current === answer) return;
    const last = before.current;
    before.current = answer;
    const count = (value: number) => amount(value, locale);
    if (last && !isComplete(last) && isComplete(answer) && answer.unlocked_count > 0) {
      showToast({ message: words.scanDone(count(answer.unlocked_count), count(answer.total_count)), kind: "good" });
    }
    const found = newSteps(last, answer);
    if (found.length > MOST_APART) {
      showToast({ title: words.manyUnlocksTitle, message: words.manyUnlocks(count(found.length)), kind: "good" });
      return;
    }
    for (const step of found) {
      const tier = catalogue.tiers.find((one) => one.id === step.tier)?.name ?? step.tier;
      const title = step.is_first ? words.unlockTitle : words.tierUpTitle;
      showToast({ title, message: words.unlockText(step.name, tier), kind: "good" });
    }
  }, [answer, catalogue, words, locale, showToast]);
}
