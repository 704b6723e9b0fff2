import { useCallback, useEffect, useRef, useState } from "react";
import { ask, wordsOf } from "./api";
import { AFTER_PROBLEM_MS, pollDelay, WHILE_SCANNING_MS } from "./scanning";
import type { Answer, Rescanned } from "./types";

export interface Followed {
  /** The last answer; it stays while the next one is fetched, and when that fails. */
  answer: Answer | null;
  problem: string | null;
  isRescanning: boolean;
  look(): void;
  /** Scan now, with *full* from the beginning; rejects with the reason when that fails. */
  rescan(full: boolean): Promise<Rescanned>;
}

/** All badges, as they are and as they change; nothing is asked while nobody looks. */
export function useAchievements(): Followed {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isRescanning, setRescanning] = useState(false);
  const busy = useRef(0);
  const turn = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const look = useCallback(async () => {
    clearTimeout(timer.current);
    turn.current += 1;
    const mine = turn.current;
    let delay = AFTER_PROBLEM_MS;
    try {
      const next = await ask<Answer>("/achievements");
      if (mine !== turn.current) return;
      setAnswer(next);
      setProblem(null);
      delay = busy.current > 0 ? WHILE_SCANNING_MS : pollDelay(next);
    } catch (error) {
      if (mine !== turn.current) return;
      setProblem(wordsOf(error));
    }
    if (document.visibilityState === "visible") timer.current = setTimeout(() => void look(), delay);
  }, []);

  useEffect(() => {
    const onVisible = () => {
      if (document.visibilityState === "visible") void look();
      else clearTimeout(timer.current);
    };
    void look();
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      document.removeEventListener("visibilitychange", onVisible);
      clearTimeout(timer.current);
      turn.current += 1; // an answer that is under way comes too late
    };
  }, [look]);

  const rescan = useCallback(
    async (full: boolean) => {
      busy.current += 1;
      setRescanning(true);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => void look(), WHILE_SCANNING_MS / 2);
      try {
        return await ask<Rescanned>(`/rescan?full=${full}`, { method: "POST" });
      } finally {
        busy.current -= 1;
        setRescanning(busy.current > 0);
        void look();
      }
    },
    [look],
  );

  return { answer, problem, isRescanning, look: () => void look(), rescan };
}
