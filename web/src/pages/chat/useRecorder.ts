import { useCallback, useEffect, useRef, useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { TranscriptionText } from "@/api/types";

export type RecorderState = "idle" | "starting" | "recording" | "working";

const SLICE_MILLISECONDS = 200;

const EXTENSIONS: Record<string, string> = { "audio/webm": "webm", "audio/mp4": "m4a", "audio/ogg": "ogg" };

/** Whether this browser can record; pages without TLS have no microphone, except on the same machine. */
export function canRecord(): boolean {
  return typeof MediaRecorder !== "undefined" && Boolean(navigator.mediaDevices?.getUserMedia);
}

/** Records speech; when it is stopped, `onText` gets its text. */
export function useRecorder(onText: (text: string) => void, onError: (error: Error) => void) {
  const [state, setState] = useState<RecorderState>("idle");
  const recorder = useRef<MediaRecorder | null>(null);
  const handlers = useRef({ onText, onError });
  handlers.current = { onText, onError };
  const isLeft = useRef(false);

  const start = useCallback(async () => {
    setState("starting");
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      if (isLeft.current) return stopTracks(stream); // nothing on the page could stop it
      const recording = new MediaRecorder(stream);
      const parts: Blob[] = [];
      recording.ondataavailable = (event) => {
        parts.push(event.data);
        if (event.data.size > 0) setState((now) => (now === "starting" ? "recording" : now)); // there is sound
      };
      recording.onstop = () => {
        stopTracks(stream);
        setState("working");
        transcribe(new Blob(parts, { type: recording.mimeType }))
          .then((text) => text && handlers.current.onText(text), handlers.current.onError)
          .finally(() => setState("idle"));
      };
      recorder.current = recording;
      recording.start(SLICE_MILLISECONDS);
    } catch (error) {
      setState("idle");
      handlers.current.onError(error instanceof Error ? error : new Error(String(error)));
    }
  }, []);

  const stop = useCallback(() => recorder.current?.stop(), []);

  useEffect(() => {
    isLeft.current = false;
    return () => {
      isLeft.current = true;
      const recording = recorder.current;
      if (!recording || recording.state === "inactive") return;
      recording.onstop = null; // the page is left: nothing is sent
      recording.stop();
      stopTracks(recording.stream);
    };
  }, []);
  return { state, start, stop };
}

/** Release the microphone: the browser shows that it no longer listens. */
function stopTracks(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop();
}

async function transcribe(recording: Blob): Promise<string> {
  const kind = recording.type.split(";", 1)[0] ?? "";
  const name = `voice.${EXTENSIONS[kind] ?? "webm"}`;
  const answer = await fetchJSON<TranscriptionText>(withQuery("/api/transcriptions", { name }), {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: recording,
  });
  return answer.text.trim();
}
