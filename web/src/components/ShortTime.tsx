import { formatDateTime, formatShortTime, toMilliseconds } from "@/i18n/format";

/** A time in few characters: the time of today, else the day; the full date is its tooltip. */
export function ShortTime({ at }: { at: number }) {
  return (
    <time dateTime={new Date(toMilliseconds(at)).toISOString()} title={formatDateTime(at)}>
      {formatShortTime(at)}
    </time>
  );
}
