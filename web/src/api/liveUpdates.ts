import type { QueryClient, QueryFilters, QueryKey } from "@tanstack/react-query";
import { fetchChecked } from "./client";
import type { Overview, Progress } from "./types";

/** Whether live updates are connected. */
export type LiveStatus = "live" | "lost";

const REFRESH_DELAY_MS = 400;
const RECONNECT_MS = 3000;

/** Refetch queries when the server reports changes; returns the function that stops it. */
export function subscribeToChanges(client: QueryClient, tell: (state: LiveStatus) => void): () => void {
  const follower = new ChangeStream(client, tell);
  follower.open();
  return () => follower.close();
}

/** An event stream that reconnects; browsers do not reconnect a refused EventSource. */
class ChangeStream {
  readonly #client: QueryClient;
  readonly #onStatus: (state: LiveStatus) => void;
  readonly #changedSessions = new Set<string>();
  #source: EventSource | null = null;
  #hasUnknownChanges = false;
  #wasLost = false;
  #refreshTimer: ReturnType<typeof setTimeout> | undefined;
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(client: QueryClient, tell: (state: LiveStatus) => void) {
    this.#client = client;
    this.#onStatus = tell;
  }

  open(): void {
    const source = new EventSource("/api/live");
    this.#source = source;
    source.addEventListener("hello", () => this.#handleHello());
    source.addEventListener("change", (event: MessageEvent<string>) => this.#handleChange(event.data));
    source.addEventListener("statistics", (event: MessageEvent<string>) => this.#handleStatistics(event.data));
    source.addEventListener("gateway", () => refetch(this.#client, { queryKey: ["gateway"] }));
    source.addEventListener("achievements", () => refetch(this.#client, { queryKey: ["overview", "unlocks"] }));
    source.addEventListener("error", () => this.#handleError(source));
  }

  close(): void {
    clearTimeout(this.#refreshTimer);
    clearTimeout(this.#reconnectTimer);
    this.#source?.close();
    this.#source = null;
  }

  #handleHello(): void {
    this.#onStatus("live");
    // Unknown are the changes during an outage, and the end of a scan before the first connection.
    refetch(this.#client, this.#wasLost ? {} : { queryKey: ["overview"] });
    this.#wasLost = false;
  }

  #handleError(source: EventSource): void {
    this.#wasLost = true;
    this.#onStatus("lost");
    if (source.readyState !== EventSource.CLOSED || this.#source !== source) return;
    // The stream was refused. An ordinary request reports a 401, which opens the sign-in form.
    fetchChecked("/api/dashboard/plugins").catch(() => {});
    clearTimeout(this.#reconnectTimer);
    this.#reconnectTimer = setTimeout(() => this.open(), RECONNECT_MS);
  }

  #handleChange(data: string): void {
    const { sessions } = JSON.parse(data) as { sessions: string[] };
    for (const id of sessions) this.#changedSessions.add(id);
    this.#hasUnknownChanges ||= sessions.length === 0;
    this.#refreshTimer ??= setTimeout(() => this.#refresh(), REFRESH_DELAY_MS);
  }

  /** Show how far the history is counted; when it is, fetch the numbers. */
  #handleStatistics(data: string): void {
    const progress = JSON.parse(data) as Progress;
    if (progress.total > 0) {
      this.#client.setQueryData<Overview>(["overview"], (old) => old && { ...old, is_complete: false, progress });
      return;
    }
    refetch(this.#client, { queryKey: ["overview"] });
    refetch(this.#client, { queryKey: ["analytics"] });
  }

  #refresh(): void {
    this.#refreshTimer = undefined;
    const sessions = [...this.#changedSessions].map((id): QueryKey => ["session", id]);
    const keys: QueryKey[] = [["sessions"], ["overview"], ["boundaries"]];
    for (const queryKey of [...(this.#hasUnknownChanges ? [["session"] as const] : sessions), ...keys]) {
      refetch(this.#client, { queryKey, predicate: (query) => !isLongList(query.state.data) });
    }
    void this.#client.invalidateQueries({ queryKey: ["analytics"], refetchType: "none" });
    this.#changedSessions.clear();
    this.#hasUnknownChanges = false;
  }
}

/**
 * Fetch queries again. A first fetch under way may have read what was true before the change, and
 * invalidateQueries only waits for it: such queries are fetched once more when it has ended.
 */
function refetch(client: QueryClient, filters: QueryFilters): void {
  const first = client
    .getQueryCache()
    .findAll({ ...filters, fetchStatus: "fetching" })
    .filter((query) => query.state.data === undefined);
  void client.invalidateQueries(filters).then(() => {
    for (const { queryKey } of first) void client.invalidateQueries({ queryKey, exact: true });
  });
}

const MAX_REFETCHED_PAGES = 8;

/** Long lists are not refetched as a whole for every change; their first page is a separate query. */
function isLongList(data: unknown): boolean {
  const pages = (data as { pages?: unknown[] } | undefined)?.pages;
  return (pages?.length ?? 0) > MAX_REFETCHED_PAGES;
}
