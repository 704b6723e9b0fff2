import { useElementSize } from "@mantine/hooks";
import { type KeyboardEvent, useMemo, useState } from "react";
import type { GroupedHits } from "@/api/types";
import { useTexts } from "@/i18n";
import { formatDay } from "@/i18n/format";
import classes from "./Search.module.css";
import { type Period, periodsOf } from "./timeline";

const BAR_PIXELS = 25; // a finger hits each
const MIN_BARS = 8;
const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

interface Props {
  days: GroupedHits["days"];
  onNarrow: (period: Period) => void;
}

/** The hits over time; a bar narrows the search to its period. The arrows move between the bars. */
export function SearchTimeline({ days, onNarrow }: Props) {
  const texts = useTexts().sessions;
  const { ref, width } = useElementSize();
  const most = Math.max(MIN_BARS, Math.floor(width / BAR_PIXELS));
  const periods = useMemo(() => periodsOf(days, most), [days, most]);
  const [current, setCurrent] = useState("");
  if (periods.length < 2) return null;
  const highest = Math.max(...periods.map((one) => one.hits));
  const filled = periods.filter((one) => one.hits > 0);
  const reached = filled.some((one) => one.since === current) ? current : filled.at(-1)?.since;

  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = STEPS[event.key];
    const next = filled[filled.findIndex((one) => one.since === reached) + (step ?? 0)];
    if (!step || !next) return;
    event.preventDefault();
    setCurrent(next.since);
    event.currentTarget.querySelector<HTMLElement>(`[data-since="${next.since}"]`)?.focus();
  };
  return (
    <div ref={ref}>
      <div style={{ maxWidth: `${3 * periods.length}rem` }}>
        <div className={classes.bars} role="toolbar" aria-label={texts.timeline} onKeyDown={move}>
          {periods.map((period) => {
            const name = `${periodName(period)}: ${texts.hits(period.hits)}`;
            if (period.hits === 0) return <span key={period.since} className={classes.gap} />;
            return (
              <button
                key={period.since}
                type="button"
                className={classes.bar}
                data-since={period.since}
                tabIndex={period.since === reached ? 0 : -1}
                aria-label={name}
                title={name}
                onClick={() => onNarrow(period)}
              >
                <span style={{ height: `${Math.max(8, (100 * period.hits) / highest)}%` }} />
              </button>
            );
          })}
        </div>
        <div className={classes.axis} aria-hidden>
          <span>{formatDay(periods[0]?.since ?? "")}</span>
          <span>{formatDay(periods.at(-1)?.until ?? "")}</span>
        </div>
      </div>
    </div>
  );
}

function periodName({ since, until }: Period): string {
  return since === until ? formatDay(since) : `${formatDay(since)} – ${formatDay(until)}`;
}
