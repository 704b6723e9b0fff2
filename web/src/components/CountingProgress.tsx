import { Progress, Text } from "@mantine/core";
import type { Progress as ScanProgress } from "@/api/types";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";

/** How much of the history has been counted, while it is counted for the first time. */
export function CountingProgress({ progress }: { progress: ScanProgress | null }) {
  const texts = useTexts().counting;
  const { done, total } = progress ?? { done: 0, total: 0 };
  return (
    <div role="status">
      <Text size="sm" mb={4}>
        {total > 0 ? texts.progress(formatInteger(done), formatInteger(total)) : texts.begin}
      </Text>
      <Progress value={(100 * done) / Math.max(1, total)} aria-label={texts.label} />
    </div>
  );
}
