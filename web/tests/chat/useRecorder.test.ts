import { act, renderHook } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { useRecorder } from "@/pages/chat/useRecorder";

class FakeRecorder {
  static started = 0;
  state = "recording";

  start() {
    FakeRecorder.started += 1;
  }
}

afterEach(() => vi.unstubAllGlobals());

it("releases a microphone that is allowed after another conversation was opened", async () => {
  const stop = vi.fn();
  let allow: (stream: unknown) => void = () => {};
  const getUserMedia = () => new Promise((resolve) => (allow = resolve));
  vi.stubGlobal("MediaRecorder", FakeRecorder);
  vi.stubGlobal("navigator", { mediaDevices: { getUserMedia } });
  const { result, unmount } = renderHook(() =>
    useRecorder(
      () => {},
      () => {},
    ),
  );
  let starting: Promise<void> = Promise.resolve();
  act(() => {
    starting = result.current.start();
  });
  unmount();
  allow({ getTracks: () => [{ stop }] });
  await starting;
  expect(stop).toHaveBeenCalledOnce();
  expect(FakeRecorder.started).toBe(0);
});
