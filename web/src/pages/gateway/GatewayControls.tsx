import { Button, Text } from "@mantine/core";
import { Play, RotateCw, Square } from "lucide-react";
import { useState } from "react";
import { sendJSON } from "@/api/client";
import { ConfirmButton } from "@/components/ConfirmButton";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";

type Action = "start" | "stop" | "restart";

/** Buttons that start, stop and restart the gateway. */
export function GatewayControls({ isRunning }: { isRunning: boolean }) {
  const texts = useTexts().gateway;
  const [action, setAction] = useState<Action | null>(null);
  const { run, isBusy } = useChange("gateway", "logs");
  const change = (wanted: Action) => async () => {
    setAction(wanted);
    await run(
      () => sendJSON<{ message: string }>("POST", `/api/gateway/${wanted}`),
      (done) => done.message,
    );
    setAction(null);
  };
  return (
    <>
      {isBusy && action && (
        <Text size="sm" c="dimmed" role="status">
          {texts.working[action]}
        </Text>
      )}
      {!isRunning && (
        <Button size="xs" leftSection={<Play size={14} />} loading={isBusy} onClick={() => void change("start")()}>
          {texts.start}
        </Button>
      )}
      {isRunning && (
        <>
          <Button
            size="xs"
            variant="default"
            leftSection={<RotateCw size={14} />}
            loading={isBusy}
            onClick={() => void change("restart")()}
          >
            {texts.restart}
          </Button>
          <ConfirmButton
            size="xs"
            variant="default"
            leftSection={<Square size={14} />}
            disabled={isBusy}
            label={texts.stop}
            question={texts.stopQuestion}
            onConfirm={() => void change("stop")()}
          />
        </>
      )}
    </>
  );
}
