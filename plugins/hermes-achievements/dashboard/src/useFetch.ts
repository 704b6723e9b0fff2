import { useCallback, useEffect, useState } from "react";
import { errorMessage, fetchApi } from "./api";

interface FetchResult<T> {
  data: T | null;
  problem: string | null;
  isLoading: boolean;
  retry(): void;
}

/** Fetch a path; refetch when the path or *version* changes, and keep the old data until then. */
export function useFetch<T>(path: string, version = ""): FetchResult<T> {
  const [data, setData] = useState<T | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [attempt, setAttempt] = useState(0);
  const wanted = `${path} ${version} ${attempt}`;

  useEffect(() => {
    const leaving = new AbortController();
    setLoading(wanted !== "");
    fetchApi<T>(path, { signal: leaving.signal }).then(
      (response) => {
        setData(response);
        setProblem(null);
        setLoading(false);
      },
      (error) => {
        if (leaving.signal.aborted) return;
        setProblem(errorMessage(error));
        setLoading(false);
      },
    );
    return () => leaving.abort();
  }, [path, wanted]);

  const retry = useCallback(() => setAttempt((count) => count + 1), []);
  return { data, problem, isLoading, retry };
}
