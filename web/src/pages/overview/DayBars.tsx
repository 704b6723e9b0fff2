import { Link } from "@tanstack/react-router";
import { useTexts } from "@/i18n";
import { formatDay } from "@/i18n/format";
import classes from "./Overview.module.css";

/** Messages per day as bars; each links to the sessions of its day. */
export function DayBars({ days }: { days: { day: string; messages: number }[] }) {
  const texts = useTexts().general;
  const highest = Math.max(1, ...days.map((one) => one.messages));
  return (
    <div className={classes.bars}>
      {days.map((one) => (
        <Link
          key={one.day}
          to="/sessions"
          search={{ day: one.day } as never}
          className={classes.bar}
          aria-label={`${formatDay(one.day)}: ${texts.messages(one.messages)}`}
          title={`${formatDay(one.day)}: ${texts.messages(one.messages)}`}
        >
          <span style={{ height: `${Math.max(3, (100 * one.messages) / highest)}%` }} data-empty={one.messages === 0} />
          <small aria-hidden>{Number(one.day.slice(8))}</small>
        </Link>
      ))}
    </div>
  );
}
