/** Formatting of numbers and times. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const COMPACT_FROM = 100_000;

/** Format a number with thousands separators; very large ones compactly. */
export function formatNumber(value: number, locale = "en"): string {
  const isLarge = Math.abs(value) >= COMPACT_FROM;
  const options: Intl.NumberFormatOptions = isLarge
    ? { notation: "compact", maximumFractionDigits: 1 }
    : { maximumFractionDigits: 0 };
  return new Intl.NumberFormat(locale, options).format(value);
}

/** Format the day of a timestamp in seconds: "15 Nov 2026". */
export function formatDay(at: number, locale = "en"): string {
  return new Intl.DateTimeFormat(dateLocale(locale), { day: "numeric", month: "short", year: "numeric" }).format(
    at * 1000,
  );
}

/** Format a timestamp with its time: "15 Nov 2026, 20:43". */
export function formatDateTime(at: number, locale = "en"): string {
  const options = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" } as const;
  return new Intl.DateTimeFormat(dateLocale(locale), options).format(at * 1000);
}

/** Format the month of a timestamp: "November 2026". */
export function formatMonth(at: number, locale = "en"): string {
  return new Intl.DateTimeFormat(dateLocale(locale), { month: "long", year: "numeric" }).format(at * 1000);
}

/** Format a calendar day with its weekday: "Sunday, 15 November". */
export function formatCalendarDay(text: string, locale = "en"): string {
  const options = { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" } as const;
  return new Intl.DateTimeFormat(dateLocale(locale), options).format(Date.parse(`${text}T00:00:00Z`));
}

/** The short name of a month, 0 to 11. */
export function monthName(number: number, locale = "en"): string {
  return new Intl.DateTimeFormat(dateLocale(locale), { month: "short", timeZone: "UTC" }).format(
    Date.UTC(2024, number, 15),
  );
}

/** The name of a weekday, Monday as 0. */
export function weekdayName(number: number, width: "short" | "long" = "short", locale = "en"): string {
  return new Intl.DateTimeFormat(dateLocale(locale), { weekday: width, timeZone: "UTC" }).format(
    Date.UTC(2024, 0, 1 + number),
  );
}

/** Format a duration: "45 s", "12 min", "3 h 20 min". */
export function formatDuration(seconds: number): string {
  if (seconds < MINUTE) return `${Math.max(1, Math.floor(seconds))} s`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes < MINUTE) return `${minutes} min`;
  const rest = minutes % MINUTE;
  return rest ? `${Math.floor(seconds / HOUR)} h ${rest} min` : `${minutes / MINUTE} h`;
}

// English dates follow the rest of the page: day first, 24-hour clock.
function dateLocale(locale: string): string {
  return locale === "en" ? "en-GB" : locale;
}
