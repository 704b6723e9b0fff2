import { useCallback, useEffect, useRef, useState } from "react";
import { errorMessage, fetchApi } from "./api";
import { POLL_ERROR_MS, POLL_SCANNING_MS, pollDelay } from "./scanState";
import type { AchievementsResponse, RescanResponse } from "./types";

export interface AchievementsFeed {
  /** The last successful response. */
  response: AchievementsResponse | null;
  problem: string | null;
  isRescanning: boolean;
  refresh(): void;
  /** Start a scan; a *full* scan reads the entire history. Rejects if the scan fails. */
  rescan(full: boolean): Promise<RescanResponse>;
}

/** Poll the badges while the page is visible. */
export function useAchievements(): AchievementsFeed {
  const [response, setResponse] = useState<AchievementsResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isRescanning, setRescanning] = useState(false);
  const busy = useRef(0);
  const turn = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const refresh = useCallback(async () => {
    clearTimeout(timer.current);
    turn.current += 1;
    const mine = turn.current;
    let delay = POLL_ERROR_MS;
    try {
      const next = await fetchApi<AchievementsResponse>("/achievements");
      if (mine !== turn.current) return;
      setResponse(next);
      setProblem(null);
      delay = busy.current > 0 ? POLL_SCANNING_MS : pollDelay(next);
    } catch (error) {
      if (mine !== turn.current) return;
      setProblem(errorMessage(error));
    }
    if (document.visibilityState === "visible") timer.current = setTimeout(() => void refresh(), delay);
  }, []);

  useEffect(() => {
    const onVisible = () => {
      if (document.visibilityState === "visible") void refresh();
      else clearTimeout(timer.current);
    };
    void refresh();
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      document.removeEventListener("visibilitychange", onVisible);
      clearTimeout(timer.current);
      turn.current += 1; // ignores responses that are still pending
    };
  }, [refresh]);

  const rescan = useCallback(
    async (full: boolean) => {
      busy.current += 1;
      setRescanning(true);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => void refresh(), POLL_SCANNING_MS / 2);
      try {
        return await fetchApi<RescanResponse>(`/rescan?full=${full}`, { method: "POST" });
      } finally {
        busy.current -= 1;
        setRescanning(busy.current > 0);
        void refresh();
      }
    },
    [refresh],
  );

  return { response, problem, isRescanning, refresh: () => void refresh(), rescan };
}
