import { useEffect, useState } from "react";
import { formatDateTime, formatRelativeTime, toMilliseconds } from "@/i18n/format";

const MINUTE_MS = 60_000;

/** A relative time with the full date as its tooltip. */
export function RelativeTime({ at }: { at: number }) {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), MINUTE_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={new Date(toMilliseconds(at)).toISOString()} title={formatDateTime(at)}>
      {formatRelativeTime(at, Math.max(now, at))}
    </time>
  );
}
