import { SimpleGrid } from "@mantine/core";
import type { Analytics } from "@/api/types";
import { Stat } from "@/components/Stat";
import { useTexts } from "@/i18n";
import { formatCompact, formatDollars, formatDuration, formatInteger, formatPercent } from "@/i18n/format";
import { formatChange } from "./ranges";

const EMPTY_NOTE = "\u00a0"; // keeps the height, so that nothing moves when the numbers arrive

// Known when the history is counted; the others are stored with the sessions.
const COUNTED: ReadonlySet<string> = new Set(["messages", "tool_calls", "days"]);

/** Totals of the period, compared with the previous one. */
export function TotalsRow({ data }: { data: Analytics | undefined }) {
  const { analytics: texts, counting } = useTexts();
  const names = ["sessions", "messages", "tool_calls", "tokens", "cost", "days"] as const;
  const values = data && totalsOf(data);
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
      {names.map((name) => {
        const isKnown = data?.is_complete || !COUNTED.has(name);
        const shown = isKnown ? values?.[name] : undefined;
        const change = shown && formatChange(shown.now, shown.before);
        const notes = [shown?.note(texts), change && texts.compared(change)].filter(Boolean);
        return (
          <Stat
            key={name}
            name={texts.totals[name]}
            value={shown ? shown.format(shown.now) : counting.unknown}
            note={notes.join("; ") || EMPTY_NOTE}
          />
        );
      })}
    </SimpleGrid>
  );
}

/** Each total with its previous value, its format and what else is said of it. */
function totalsOf({ totals, before }: Analytics) {
  const none = () => "";
  const failures = (texts: { failed: string }) =>
    totals.tool_calls > 0 ? `${formatPercent(totals.tool_failures / totals.tool_calls)} ${texts.failed}` : "";
  const tokens = ({ input_tokens: input, output_tokens: output }: Analytics["totals"]) => input + output;
  const amount = (
    now: number,
    then: number,
    format: (value: number) => string,
    note: (texts: { failed: string }) => string = none,
  ) => ({
    now,
    before: then,
    format,
    note,
  });
  return {
    sessions: amount(totals.sessions, before.sessions, (n) => formatInteger(n)),
    messages: amount(totals.messages, before.messages, (n) => formatCompact(n)),
    tool_calls: amount(totals.tool_calls, before.tool_calls, (n) => formatCompact(n), failures),
    tokens: amount(tokens(totals), tokens(before), (n) => formatCompact(n)),
    cost: amount(totals.cost_usd, before.cost_usd, (n) => formatDollars(n)),
    days: amount(
      totals.active_days,
      before.active_days,
      (n) => formatInteger(n),
      () => formatDuration(totals.active_seconds),
    ),
  };
}
