import { Alert, Button, Checkbox, Group, Loader, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { RpcParams, RpcSchemas, SessionRequest } from "@/chat/rpc";
import type { Checkpoint } from "@/chat/useCheckpoints";
import { DiffView } from "@/components/DiffView";
import { errorMessage } from "@/components/notices";
import { parseDiff, showInvisible } from "@/components/toolText";
import { useTexts } from "@/i18n";

type RestorePreview = RpcSchemas["RestorePlanView"];
type RestoreOutcome = RpcSchemas["RestoreOutcome"];
type Restore = Omit<RpcParams<"checkpoints.restore">, "session_id">;

interface Props {
  checkpoint: Checkpoint;
  call: SessionRequest;
  isRunning: boolean;
  onBack: () => void;
  onRestored: () => void;
}

/** What a checkpoint changed; then what restoring would change, with a choice of files; then the result. */
export function CheckpointView({ checkpoint, call, isRunning, onBack, onRestored }: Props) {
  const texts = useTexts().chat.files;
  const general = useTexts().general;
  const [diff, setDiff] = useState<string | null>(null);
  const [preview, setPreview] = useState<RestorePreview | null>(null);
  const [result, setResult] = useState<RestoreOutcome | null>(null);
  const [problem, setProblem] = useState("");
  const fail = (error: unknown) => setProblem(errorMessage(error));
  const { number } = checkpoint;

  useEffect(() => {
    const request = call("checkpoints.diff", { scope: String(number) });
    request.then(
      (found) => setDiff(found.diff),
      (error) => setProblem(errorMessage(error)),
    );
  }, [call, number]);

  const showPreview = () => call("checkpoints.preview", { number }).then(setPreview, fail);
  const restore = async (params: Restore) => {
    try {
      setResult(await call("checkpoints.restore", params));
      onRestored();
    } catch (error) {
      fail(error);
    }
  };
  const undo = result?.numbers[0];
  return (
    <Stack gap="sm">
      <Text fw={600} size="sm">
        {preview ? texts.previewTitle(number) : texts.changedBy(number)}
      </Text>
      {problem && (
        <Alert color="red" variant="light" role="alert">
          {problem}
        </Alert>
      )}
      {result ? (
        <Outcome result={result} />
      ) : preview ? (
        <RestoreForm preview={preview} isRunning={isRunning} onRestore={(files) => restore({ number, ...files })} />
      ) : diff === null ? (
        !problem && <Loader size="sm" />
      ) : (
        <DiffView lines={parseDiff(showInvisible(diff))} />
      )}
      <Group justify="space-between">
        <Button variant="default" size="xs" onClick={onBack}>
          {texts.back}
        </Button>
        {result && undo !== undefined && (
          <Button variant="default" size="xs" onClick={() => void restore({ number: undo })}>
            {general.undo}
          </Button>
        )}
        {!preview && !result && (
          <Button size="xs" disabled={isRunning || diff === null} onClick={() => void showPreview()}>
            {texts.preview}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

interface FormProps {
  preview: RestorePreview;
  isRunning: boolean;
  onRestore: (files: { paths: string; force: string }) => void;
}

/** The files that would change; those that were changed since are restored only if they are chosen. */
function RestoreForm({ preview, isRunning, onRestore }: FormProps) {
  const texts = useTexts().chat.files;
  const [chosen, setChosen] = useState(() => preview.files.filter((one) => !one.problem).map((one) => one.path));
  if (preview.files.length === 0) return <Text size="sm">{texts.nothing}</Text>;
  const files = preview.files.filter((one) => chosen.includes(one.path));
  const names = (isForced: boolean) => files.filter((one) => Boolean(one.problem) === isForced).map((one) => one.path);
  return (
    <Stack gap="sm">
      <Checkbox.Group value={chosen} onChange={setChosen}>
        <Stack gap={6}>
          {preview.files.map((one) => (
            <Checkbox
              key={one.path}
              value={one.path}
              label={showInvisible(`${one.path} (${texts.changes[one.change] ?? one.change})`)}
              description={one.problem || undefined}
              disabled={Boolean(one.problem) && !one.may_force}
            />
          ))}
        </Stack>
      </Checkbox.Group>
      <Text size="sm">{texts.diff}</Text>
      <DiffView lines={parseDiff(showInvisible(preview.diff))} />
      <Group justify="flex-end">
        <Button
          size="xs"
          disabled={isRunning || files.length === 0}
          onClick={() => onRestore({ paths: names(false).join("\n"), force: names(true).join("\n") })}
        >
          {texts.apply(files.length)}
        </Button>
      </Group>
    </Stack>
  );
}

function Outcome({ result }: { result: RestoreOutcome }) {
  const texts = useTexts().chat.files;
  return (
    <Alert color={result.refused.length > 0 ? "yellow" : "green"} variant="light" role="status">
      <Text size="sm">{texts.restored(result.restored.length)}</Text>
      {result.refused.length > 0 && <Text size="sm">{texts.refused(result.refused.length)}</Text>}
      {result.refused.map((one) => (
        <Text key={one.path} size="sm">
          {showInvisible(`${one.path}: ${one.problem}`)}
        </Text>
      ))}
    </Alert>
  );
}
