import { Progress, Text } from "@mantine/core";
import type { Progress as Counted, GroupedHits } from "@/api/types";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import classes from "./Search.module.css";

/** How far the indexes of words and of meaning are, until both are complete. */
export function IndexProgress({ state }: { state: GroupedHits }) {
  const texts = useTexts().sessions;
  const { progress, vectors } = state;
  if (!progress && state.is_partial) {
    return (
      <Text size="sm" c="dimmed" role="status">
        {texts.partial}
      </Text>
    );
  }
  return (
    <>
      {progress && <IndexBar progress={progress} label={texts.indexing} />}
      {vectors && <IndexBar progress={vectors} label={texts.embedding} />}
    </>
  );
}

function IndexBar({ progress, label }: { progress: Counted; label: (done: string, total: string) => string }) {
  const text = label(formatInteger(progress.done), formatInteger(progress.total));
  return (
    <div role="status" className={classes.progress}>
      <Text size="xs" c="dimmed">
        {text}
      </Text>
      <Progress size="sm" value={(100 * progress.done) / Math.max(1, progress.total)} aria-label={text} />
    </div>
  );
}
