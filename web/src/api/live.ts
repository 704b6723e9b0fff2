import type { QueryClient } from "@tanstack/react-query";
import { fetchChecked } from "./client";

/** Whether the page hears of changes at once. */
export type Connection = "live" | "lost";

const PAUSE_MS = 400;
const AGAIN_MS = 3000;

/** Look again at what has changed, as the server tells it; the returned function stops that. */
export function followChanges(client: QueryClient, tell: (state: Connection) => void): () => void {
  const follower = new Follower(client, tell);
  follower.open();
  return () => follower.close();
}

/** One stream after the other: a browser gives up on one that is refused, this does not. */
class Follower {
  readonly #client: QueryClient;
  readonly #tell: (state: Connection) => void;
  readonly #waiting = new Set<string>();
  #source: EventSource | null = null;
  #isEverything = false;
  #wasLost = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;

  constructor(client: QueryClient, tell: (state: Connection) => void) {
    this.#client = client;
    this.#tell = tell;
  }

  open(): void {
    const source = new EventSource("/api/live");
    this.#source = source;
    source.addEventListener("hello", () => this.#found());
    source.addEventListener("change", (event: MessageEvent<string>) => this.#changed(event.data));
    source.addEventListener("gateway", () => void this.#client.invalidateQueries({ queryKey: ["gateway"] }));
    source.addEventListener("error", () => this.#lost(source));
  }

  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    this.#source?.close();
    this.#source = null;
  }

  #found(): void {
    this.#tell("live");
    if (this.#wasLost) void this.#client.invalidateQueries(); // nobody told us what happened meanwhile
    this.#wasLost = false;
  }

  #lost(source: EventSource): void {
    this.#wasLost = true;
    this.#tell("lost");
    if (source.readyState !== EventSource.CLOSED || this.#source !== source) return;
    // It was refused. An ordinary request finds out whether somebody has to log in.
    fetchChecked("/api/dashboard/plugins").catch(() => {});
    clearTimeout(this.#again);
    this.#again = setTimeout(() => this.open(), AGAIN_MS);
  }

  #changed(data: string): void {
    const { sessions } = JSON.parse(data) as { sessions: string[] };
    for (const id of sessions) this.#waiting.add(id);
    this.#isEverything ||= sessions.length === 0;
    this.#timer ??= setTimeout(() => this.#refresh(), PAUSE_MS);
  }

  #refresh(): void {
    this.#timer = undefined;
    const keys = this.#isEverything ? [["session"]] : [...this.#waiting].map((id) => ["session", id]);
    for (const key of [...keys, ["sessions"], ["overview"], ["boundaries"]]) {
      void this.#client.invalidateQueries({ queryKey: key, predicate: (query) => !isLong(query.state.data) });
    }
    void this.#client.invalidateQueries({ queryKey: ["analytics"], refetchType: "none" });
    this.#waiting.clear();
    this.#isEverything = false;
  }
}

const MOST_PAGES = 8;

/** A list somebody has scrolled far down is not fetched whole for every change: its head is a query of its own. */
function isLong(data: unknown): boolean {
  const pages = (data as { pages?: unknown[] } | undefined)?.pages;
  return (pages?.length ?? 0) > MOST_PAGES;
}
