import { useCallback, useEffect, useState } from "react";
import { ask, wordsOf } from "./api";

interface Fetched<T> {
  found: T | null;
  problem: string | null;
  isLoading: boolean;
  again(): void;
}

/** What a path answers; asked anew when the path or *version* changes, and the old answer stays until then. */
export function useFetched<T>(path: string, version = ""): Fetched<T> {
  const [found, setFound] = useState<T | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [attempt, setAttempt] = useState(0);
  const wanted = `${path} ${version} ${attempt}`;

  useEffect(() => {
    const leaving = new AbortController();
    setLoading(wanted !== "");
    ask<T>(path, { signal: leaving.signal }).then(
      (answer) => {
        setFound(answer);
        setProblem(null);
        setLoading(false);
      },
      (error) => {
        if (leaving.signal.aborted) return;
        setProblem(wordsOf(error));
        setLoading(false);
      },
    );
    return () => leaving.abort();
  }, [path, wanted]);

  const again = useCallback(() => setAttempt((count) => count + 1), []);
  return { found, problem, isLoading, again };
}
