import { useMemo } from "react";
import { amount, calendarDay, monthName, weekdayName } from "./format";
import { cellsOf, isStrip, monthStarts } from "./heat";
import type { Recap } from "./types";
import { useWords } from "./useWords";

const LEVELS = [0, 1, 2, 3, 4];

/** The days of a period: a strip of weeks for a year, a calendar for a month. */
export function HeatMap({ recap }: { recap: Recap }) {
  const { words, locale } = useWords();
  const cells = useMemo(() => cellsOf(recap.days), [recap.days]);
  const strip = isStrip(recap.days);
  const said = words.recapDaysLabel(amount(recap.active_days, locale), amount(recap.days.length, locale));
  const place = (week: number, weekday: number) =>
    strip ? { gridColumn: week + 2, gridRow: weekday + 2 } : { gridColumn: weekday + 1, gridRow: week + 2 };
  return (
    <>
      <div className="ach-heat-scroll" tabIndex={strip ? 0 : undefined} role="img" aria-label={said}>
        <div className={strip ? "ach-heat" : "ach-heat ach-heat-month"}>
          {strip &&
            monthStarts(cells).map(({ week, month }) => (
              <span key={month} className="ach-heat-label" style={{ gridColumn: `${week + 2} / span 4`, gridRow: 1 }}>
                {monthName(month, locale)}
              </span>
            ))}
          {[0, 1, 2, 3, 4, 5, 6].map((number) => (
            <span
              key={number}
              className="ach-heat-label"
              style={strip ? { gridColumn: 1, gridRow: number + 2 } : { gridColumn: number + 1, gridRow: 1 }}
            >
              {(!strip || number % 2 === 0) && weekdayName(number, "short", locale)}
            </span>
          ))}
          {cells.map((cell) => (
            <span
              key={cell.day}
              className="ach-heat-cell"
              data-level={cell.level}
              style={place(cell.week, cell.weekday)}
              title={words.recapDay(calendarDay(cell.day, locale), amount(cell.messages, locale))}
            >
              {!strip && Number(cell.day.slice(8))}
            </span>
          ))}
        </div>
      </div>
      <p className="ach-heat-legend ach-small" aria-hidden="true">
        {words.recapLess}
        {LEVELS.map((level) => (
          <span key={level} className="ach-heat-cell" data-level={level} />
        ))}
        {words.recapMore}
      </p>
    </>
  );
}
