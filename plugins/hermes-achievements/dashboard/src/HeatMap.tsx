import { useMemo } from "react";
import { formatCalendarDay, formatNumber, monthName, weekdayName } from "./format";
import { buildCells, isWeekStrip, monthStarts } from "./heatGrid";
import type { Recap } from "./types";
import { useTexts } from "./useTexts";

const LEVELS = [0, 1, 2, 3, 4];

/** A heat map of the days of a period: a strip of weeks for a year, a calendar for a month. */
export function HeatMap({ recap }: { recap: Recap }) {
  const { texts, locale } = useTexts();
  const cells = useMemo(() => buildCells(recap.days), [recap.days]);
  const strip = isWeekStrip(recap.days);
  const label = texts.recapDaysLabel(formatNumber(recap.active_days, locale), formatNumber(recap.days.length, locale));
  const gridPosition = (week: number, weekday: number) =>
    strip ? { gridColumn: week + 2, gridRow: weekday + 2 } : { gridColumn: weekday + 1, gridRow: week + 2 };
  return (
    <>
      <div className="ach-heat-scroll" tabIndex={strip ? 0 : undefined} role="img" aria-label={label}>
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
              style={gridPosition(cell.week, cell.weekday)}
              title={texts.recapDay(formatCalendarDay(cell.day, locale), formatNumber(cell.messages, locale))}
            >
              {!strip && Number(cell.day.slice(8))}
            </span>
          ))}
        </div>
      </div>
      <p className="ach-heat-legend ach-small" aria-hidden="true">
        {texts.recapLess}
        {LEVELS.map((level) => (
          <span key={level} className="ach-heat-cell" data-level={level} />
        ))}
        {texts.recapMore}
      </p>
    </>
  );
}
