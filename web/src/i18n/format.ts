/** Formatting of numbers, times and sizes. */

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 60 * MINUTE_SECONDS;
const DAY_SECONDS = 24 * HOUR_SECONDS;

const MAX_DATE_MS = 8.64e15; // the limit of Date

/** Convert seconds to milliseconds, clamped to what a Date can hold. */
export function toMilliseconds(at: number): number {
  return Number.isFinite(at) ? Math.max(-MAX_DATE_MS, Math.min(MAX_DATE_MS, at * 1000)) : 0;
}

/** Format large numbers compactly: 1234567 as "1.2M", 123456 as "123K". */
export function formatCompact(value: number, locale = "en"): string {
  const size = Math.abs(value);
  const unit = size < 1 ? 1 : 1000 ** Math.floor(Math.log10(size) / 3);
  const maximumFractionDigits = size / unit < 100 ? 1 : 0;
  return new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits }).format(value);
}

/** Format an integer with thousands separators. */
export function formatInteger(value: number, locale = "en"): string {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: 0 }).format(value);
}

/** Format US dollars; amounts below one keep three digits. */
export function formatDollars(value: number, locale = "en"): string {
  const digits = value !== 0 && Math.abs(value) < 1 ? 3 : 2;
  return new Intl.NumberFormat(locale, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(value);
}

/** Format the cost of an answer: amounts below a cent keep two significant digits. */
export function formatSmallDollars(value: number, locale = "en"): string {
  if (value === 0 || Math.abs(value) >= 0.01) return formatDollars(value, locale);
  const options = { style: "currency", currency: "USD", maximumSignificantDigits: 2 } as const;
  return new Intl.NumberFormat(locale, options).format(value);
}

/** Format US dollars in whole cents, for columns; smaller amounts are "<$0.01". */
export function formatCents(value: number, locale = "en"): string {
  const text = (amount: number) => new Intl.NumberFormat(locale, { style: "currency", currency: "USD" }).format(amount);
  return value > 0 && value < 0.005 ? `<${text(0.01)}` : text(value);
}

/** Format a fraction as a percentage. */
export function formatPercent(value: number, locale = "en"): string {
  return new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: value < 0.1 ? 1 : 0 }).format(value);
}

/** "3 hours ago", "in 2 days"; times are seconds since 1970. */
export function formatRelativeTime(at: number, now = Date.now() / 1000, locale = "en"): string {
  const formatter = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  const seconds = at - now;
  const size = Math.abs(seconds);
  if (!Number.isFinite(seconds)) return "";
  if (size < 45) return "just now";
  if (size < HOUR_SECONDS) return formatter.format(Math.round(seconds / MINUTE_SECONDS), "minute");
  if (size < DAY_SECONDS) return formatter.format(Math.round(seconds / HOUR_SECONDS), "hour");
  if (size < 30 * DAY_SECONDS) return formatter.format(calendarDays(now, at), "day");
  if (size < 365 * DAY_SECONDS) return formatter.format(Math.trunc(seconds / (30 * DAY_SECONDS)), "month");
  return formatter.format(Math.trunc(seconds / (365 * DAY_SECONDS)), "year");
}

/** The number of days from the day of one time to the day of another. */
function calendarDays(from: number, to: number): number {
  const [start, end] = [from, to].map((at) => new Date(toMilliseconds(at)).setHours(0, 0, 0, 0));
  return Math.round(((end ?? 0) - (start ?? 0)) / toMilliseconds(DAY_SECONDS)); // a day may have 23 or 25 hours
}

/** Format a date and time: "Sunday, 15 November 2026 at 20:43". */
export function formatDateTime(at: number, locale = "en-GB"): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" }).format(toMilliseconds(at));
}

/** Format the time of day. */
export function formatTime(at: number, locale = "en-GB"): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: "short" }).format(toMilliseconds(at));
}

/** Format a time in few characters: "20:43" of today, "15 Nov" of this year, "15 Nov 2025". */
export function formatShortTime(at: number, now = Date.now(), locale = "en-GB"): string {
  const date = new Date(toMilliseconds(at));
  const today = new Date(now);
  if (date.toDateString() === today.toDateString()) return formatTime(at, locale);
  const year = date.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year }).format(date);
}

/** Format a day with its time: "15 Nov 2026, 20:43". */
export function formatDayTime(at: number, locale = "en-GB"): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(toMilliseconds(at));
}

/** Format a calendar day: "15 Nov 2026". */
export function formatDay(text: string, locale = "en-GB"): string {
  const [year, month, date] = text.split("-").map(Number);
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(
    Date.UTC(year || 1970, (month || 1) - 1, date || 1),
  );
}

/** Format a day of an axis: "15 Nov". */
export function formatShortDay(text: string, locale = "en-GB"): string {
  return new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: "UTC" }).format(
    Date.parse(`${text}T00:00:00Z`),
  );
}

/** Format a month: "November 2026". */
export function formatMonth(text: string, locale = "en-GB"): string {
  return new Intl.DateTimeFormat(locale, { month: "long", year: "numeric", timeZone: "UTC" }).format(
    Date.parse(`${text}-01T00:00:00Z`),
  );
}

/** Format a duration: "2 h 5 min". */
export function formatDuration(seconds: number): string {
  if (seconds < MINUTE_SECONDS) return `${Math.round(seconds)} s`;
  if (seconds < HOUR_SECONDS) return `${Math.round(seconds / MINUTE_SECONDS)} min`;
  const hours = Math.floor(seconds / HOUR_SECONDS);
  const minutes = Math.round((seconds % HOUR_SECONDS) / MINUTE_SECONDS);
  return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
}

/** Format the time of an answer: "2.4 s", "35 s", "3 min". */
export function formatSeconds(seconds: number): string {
  return seconds < 10 ? `${seconds.toFixed(1)} s` : formatDuration(seconds);
}

/** Format a size: "4.2 MB". */
export function formatBytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}
