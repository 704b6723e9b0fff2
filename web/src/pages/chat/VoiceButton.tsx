import { ActionIcon, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { LoaderCircle, Mic, MicOff } from "lucide-react";
import { fetchJSON } from "@/api/client";
import type { TranscriptionState } from "@/api/types";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { canRecord, useRecorder } from "./useRecorder";

/** Records speech and gives its text; shown only if a transcriber is configured. */
export function VoiceButton({ onText }: { onText: (text: string) => void }) {
  const texts = useTexts().chat.voice;
  const { data } = useQuery({
    queryKey: ["transcriptions"],
    queryFn: () => fetchJSON<TranscriptionState>("/api/transcriptions"),
    staleTime: 60_000,
  });
  const reasons: Record<string, string> = { NotAllowedError: texts.refused, NotFoundError: texts.missing };
  const { state, start, stop } = useRecorder(onText, (error) => showError(reasons[error.name] ?? error));
  if (!data?.is_available || !canRecord()) return null;
  const label = texts[state];
  const Icon = { idle: Mic, starting: LoaderCircle, recording: MicOff, working: LoaderCircle }[state];
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant={state === "recording" ? "light" : "subtle"}
        color={state === "recording" ? "red" : "gray"}
        aria-label={label}
        aria-pressed={state === "recording"}
        disabled={state === "working" || state === "starting"}
        onClick={state === "recording" ? stop : () => void start()}
      >
        <Icon size={18} />
      </ActionIcon>
    </Tooltip>
  );
}
