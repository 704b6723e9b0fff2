import type { QueryClient } from "@tanstack/react-query";
import { fetchChecked } from "./client";

/** Whether the page hears of changes at once. */
export type LiveStatus = "live" | "lost";

const REFRESH_DELAY_MS = 400;
const RECONNECT_MS = 3000;

/** Look again at what has changed, as the server tells it; the returned function stops that. */
export function subscribeToChanges(client: QueryClient, tell: (state: LiveStatus) => void): () => void {
  const follower = new ChangeStream(client, tell);
  follower.open();
  return () => follower.close();
}

/** One stream after the other: a browser gives up on one that is refused, this does not. */
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
    source.addEventListener("gateway", () => void this.#client.invalidateQueries({ queryKey: ["gateway"] }));
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
    if (this.#wasLost) void this.#client.invalidateQueries(); // nobody told us what happened meanwhile
    this.#wasLost = false;
  }

  #handleError(source: EventSource): void {
    this.#wasLost = true;
    this.#onStatus("lost");
    if (source.readyState !== EventSource.CLOSED || this.#source !== source) return;
    // It was refused. An ordinary request finds out whether somebody has to log in.
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

  #refresh(): void {
    this.#refreshTimer = undefined;
    const keys = this.#hasUnknownChanges ? [["session"]] : [...this.#changedSessions].map((id) => ["session", id]);
    for (const key of [...keys, ["sessions"], ["overview"], ["boundaries"]]) {
      void this.#client.invalidateQueries({ queryKey: key, predicate: (query) => !isLongList(query.state.data) });
    }
    void this.#client.invalidateQueries({ queryKey: ["analytics"], refetchType: "none" });
    this.#changedSessions.clear();
    this.#hasUnknownChanges = false;
  }
}

const MAX_REFETCHED_PAGES = 8;

/** A list somebody has scrolled far down is not fetched whole for every change: its head is a query of its own. */
function isLongList(data: unknown): boolean {
  const pages = (data as { pages?: unknown[] } | undefined)?.pages;
  return (pages?.length ?? 0) > MAX_REFETCHED_PAGES;
}
