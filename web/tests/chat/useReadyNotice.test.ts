import { renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { applyEvent, EMPTY_CONVERSATION } from "@/chat/conversationState";
import { isNotifying, setNotifying } from "@/chat/notifications";
import { useReadyNotice } from "@/chat/useReadyNotice";
import { rpcEvent as event } from "./events";

const TEXTS = { ready: "Answer ready", question: "A question", failed: "The turn has failed" };
const shown: [string, string][] = [];

class RecordedNotification {
  static permission = "granted";
  static requestPermission = async () => "granted";

  constructor(title: string, options: NotificationOptions) {
    shown.push([title, options.body ?? ""]);
  }
}

class RefusedNotification extends RecordedNotification {
  constructor(title: string, options: NotificationOptions) {
    super(title, options);
    throw new TypeError("Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.");
  }
}

const started = [
  event("message.start", { text: "one" }),
  event("message.delta", { text: "First." }),
  event("message.complete", { status: "complete" }),
  event("message.start", { text: "two" }),
].reduce(applyEvent, EMPTY_CONVERSATION);

function endInBackground(payload: Record<string, unknown>): boolean {
  const { result, rerender } = renderHook(({ state }) => useReadyNotice(state, "A title", TEXTS), {
    initialProps: { state: started },
  });
  rerender({ state: applyEvent(started, event("message.complete", payload)) });
  return result.current;
}

beforeEach(async () => {
  shown.length = 0;
  vi.stubGlobal("Notification", RecordedNotification);
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  await setNotifying(true);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  localStorage.clear();
});

describe("a turn that ends in a background tab", () => {
  it("says that it failed, and why", () => {
    endInBackground({ status: "error", error: "No key." });
    expect(shown).toEqual([["The turn has failed", "No key."]]);
  });

  it("has the mark in the title where the browser refuses to make a notification", () => {
    vi.stubGlobal("Notification", RefusedNotification);
    expect(endInBackground({ status: "complete" })).toBe(true);
    expect(isNotifying()).toBe(false);
  });
});
