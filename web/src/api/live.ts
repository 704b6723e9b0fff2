import type { QueryClient } from "@tanstack/react-query";

/** Whether the page hears of changes at once. */
export type Connection = "live" | "lost";

const PAUSE_MS = 400;

/** Look again at what has changed, as the server tells it; the returned function stops that. */
export function followChanges(client: QueryClient, tell: (state: Connection) => void): () => void {
  const source = new EventSource("/api/live");
  const waiting = new Set<string>();
  let isEverything = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const refresh = () => {
    timer = undefined;
    for (const key of isEverything ? [["session"]] : [...waiting].map((id) => ["session", id])) {
      void client.invalidateQueries({ queryKey: key });
    }
    for (const key of ["sessions", "overview", "boundaries"]) void client.invalidateQueries({ queryKey: [key] });
    void client.invalidateQueries({ queryKey: ["analytics"], refetchType: "none" });
    waiting.clear();
    isEverything = false;
  };

  source.addEventListener("hello", () => tell("live"));
  source.addEventListener("change", (event: MessageEvent<string>) => {
    const { sessions } = JSON.parse(event.data) as { sessions: string[] };
    for (const id of sessions) waiting.add(id);
    isEverything ||= sessions.length === 0;
    timer ??= setTimeout(refresh, PAUSE_MS);
  });
  source.addEventListener("gateway", () => void client.invalidateQueries({ queryKey: ["gateway"] }));
  source.addEventListener("error", () => tell("lost"));
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
