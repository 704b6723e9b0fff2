/** The cells of a heat map of days. */
import type { RecapDay } from "./types";

const MAX_CALENDAR_DAYS = 42; // longer periods are shown as a strip of weeks
const WEEK_DAYS = 7;

/** The position of a day: `week` counts from the first week, `weekday` from Monday. */
export interface Cell {
  week: number;
  weekday: number;
  day: string;
  messages: number;
  /** 0 for no activity, 4 for the busiest quarter. */
  level: number;
}

/** The day of the week, Monday as 0. */
export function weekdayOf(day: string): number {
  return (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % WEEK_DAYS;
}

/** The cells of all days. */
export function buildCells(days: readonly RecapDay[]): Cell[] {
  const limits = levelLimits(days.map((one) => one.messages).filter((count) => count > 0));
  const offset = days[0] ? weekdayOf(days[0].day) : 0;
  return days.map((one, index) => ({
    week: Math.floor((offset + index) / WEEK_DAYS),
    weekday: (offset + index) % WEEK_DAYS,
    day: one.day,
    messages: one.messages,
    level: limits.filter((limit) => one.messages > limit).length,
  }));
}

/** The lower limit of each level: quartiles of the active days. */
function levelLimits(counts: number[]): number[] {
  const ranked = [...counts].sort((a, b) => a - b);
  const quarter = (part: number) => ranked[Math.floor(((ranked.length - 1) * part) / 4)] ?? 0;
  return ranked.length === 0 ? [0] : [0, quarter(1), quarter(2), quarter(3)];
}

/** Whether the days are shown as a strip of weeks instead of a calendar. */
export function isWeekStrip(days: readonly RecapDay[]): boolean {
  return days.length > MAX_CALENDAR_DAYS;
}

/** The weeks in which months begin; a month is 0 to 11. */
export function monthStarts(cells: readonly Cell[]): { week: number; month: number }[] {
  return cells
    .filter((cell) => cell.day.endsWith("-01"))
    .map((cell) => ({ week: cell.week, month: Number(cell.day.slice(5, 7)) - 1 }));
}
