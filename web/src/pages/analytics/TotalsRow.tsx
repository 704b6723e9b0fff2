import { SimpleGrid } from "@mantine/core";
import type { Analytics } from "@/api/types";
import { Stat } from "@/components/Stat";
import { useTexts } from "@/i18n";
import { formatCompact, formatDollars, formatDuration, formatInteger, formatPercent } from "@/i18n/format";
import { formatChange } from "./ranges";

/** Totals of the period, compared with the previous one. */
export function TotalsRow({ data: { totals, before } }: { data: Analytics }) {
  const texts = useTexts().analytics;
  const compared = (now: number, then: number) => {
    const found = formatChange(now, then);
    return found && texts.compared(found);
  };
  const tokens = totals.input_tokens + totals.output_tokens;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
      <Stat
        name={texts.totals.sessions}
        value={formatInteger(totals.sessions)}
        note={compared(totals.sessions, before.sessions)}
      />
      <Stat
        name={texts.totals.messages}
        value={formatCompact(totals.messages)}
        note={compared(totals.messages, before.messages)}
      />
      <Stat
        name={texts.totals.tool_calls}
        value={formatCompact(totals.tool_calls)}
        note={totals.tool_calls > 0 && `${formatPercent(totals.tool_failures / totals.tool_calls)} ${texts.failed}`}
      />
      <Stat
        name={texts.totals.tokens}
        value={formatCompact(tokens)}
        note={compared(tokens, before.input_tokens + before.output_tokens)}
      />
      <Stat
        name={texts.totals.cost}
        value={formatDollars(totals.cost_usd)}
        note={compared(totals.cost_usd, before.cost_usd)}
      />
      <Stat
        name={texts.totals.days}
        value={formatInteger(totals.active_days)}
        note={formatDuration(totals.active_seconds)}
      />
    </SimpleGrid>
  );
}
