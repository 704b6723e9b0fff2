import { Group, Progress, Text, Tooltip } from "@mantine/core";
import type { SessionInfo } from "@/chat/conversationState";
import { useTexts } from "@/i18n";
import { formatDollars, formatPercent } from "@/i18n/format";
import classes from "./ChatPage.module.css";

/** The used share of the context window and the cost of the conversation. */
export function ContextMeter({ info }: { info: SessionInfo | null }) {
  const texts = useTexts().chat;
  if (!info?.window) return null;
  const share = Math.min(1, info.context_tokens / info.window);
  const { cost_usd: cost } = info.usage;
  return (
    <Group gap="xs" className={classes.wide}>
      {cost ? (
        <Tooltip label={texts.cost}>
          <Text size="xs" c="dimmed">
            {formatDollars(cost)}
          </Text>
        </Tooltip>
      ) : null}
      <Tooltip label={texts.context(formatPercent(share))}>
        <Progress w={70} value={share * 100} color={share > 0.8 ? "red" : undefined} aria-label={texts.contextLabel} />
      </Tooltip>
    </Group>
  );
}
