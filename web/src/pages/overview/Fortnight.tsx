import { Link } from "@tanstack/react-router";
import { day, whole } from "@/i18n/format";
import classes from "./Overview.module.css";

/** The last days as bars; each leads to the sessions of its day. */
export function Fortnight({ days }: { days: { day: string; messages: number }[] }) {
  const most = Math.max(1, ...days.map((one) => one.messages));
  return (
    <div className={classes.bars}>
      {days.map((one) => (
        <Link
          key={one.day}
          to="/sessions"
          search={{ day: one.day } as never}
          className={classes.bar}
          aria-label={`${day(one.day)}: ${whole(one.messages)}`}
          title={`${day(one.day)}: ${whole(one.messages)}`}
        >
          <span style={{ height: `${Math.max(3, (100 * one.messages) / most)}%` }} data-empty={one.messages === 0} />
          <small aria-hidden>{Number(one.day.slice(8))}</small>
        </Link>
      ))}
    </div>
  );
}
