import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, describe, expect, it, vi } from "vitest";
import { subscribeToChanges } from "@/api/liveUpdates";

/** The browser's event stream, driven by the test. */
class Stream extends EventTarget {
  static latest: Stream;
  constructor() {
    super();
    Stream.latest = this;
  }
  close(): void {}
}

afterEach(() => vi.unstubAllGlobals());

describe.each(["hello", "achievements"])("the event %s of the server", (event) => {
  it("causes a second fetch of what is being fetched for the first time", async () => {
    vi.stubGlobal("EventSource", Stream);
    const client = new QueryClient();
    const answers: ((text: string) => void)[] = [];
    const observer = new QueryObserver(client, {
      queryKey: ["overview", "unlocks"],
      queryFn: () => new Promise<string>((resolve) => answers.push(resolve)),
    });
    const stopObserving = observer.subscribe(() => {});
    const close = subscribeToChanges(client, () => {});
    Stream.latest.dispatchEvent(new Event(event));
    answers[0]?.("before the change");
    await vi.waitFor(() => expect(answers).toHaveLength(2));
    answers[1]?.("after the change");
    await vi.waitFor(() => expect(client.getQueryData(["overview", "unlocks"])).toBe("after the change"));
    close();
    stopObserving();
  });
});
