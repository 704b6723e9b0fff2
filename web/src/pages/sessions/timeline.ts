/** The time line of search results: days with hits, summed up to as many bars as can be clicked. */

/** A period with its number of hits; both days belong to it. */
export interface Period {
  since: string;
  until: string;
  hits: number;
}

interface DayHits {
  day: string;
  hits: number;
}

const DAY_MS = 86_400_000;
// Another program may have stored any time.
const FIRST_DAY = "1990";
const LAST_DAY = "2100";

/** The first day of the period that a day belongs to, by the length of the periods. */
const STARTS: ((day: Date) => number)[] = [
  (day) => day.getTime(),
  (day) => day.getTime() - ((day.getUTCDay() + 6) % 7) * DAY_MS, // Monday
  (day) => Date.UTC(day.getUTCFullYear(), day.getUTCMonth()),
  (day) => Date.UTC(day.getUTCFullYear(), day.getUTCMonth() - (day.getUTCMonth() % 3)),
  (day) => Date.UTC(day.getUTCFullYear(), 0),
];

/** At most *most* periods from the first day with hits to the last one, also those without hits: the shortest ones. */
export function periodsOf(days: DayHits[], most: number): Period[] {
  const known = days.filter(({ day }) => day >= FIRST_DAY && day < LAST_DAY);
  if (known.length === 0) return [];
  let periods: Period[] = [];
  for (const start of STARTS) {
    periods = periodsFrom(known, start);
    if (periods.length <= most) break;
  }
  return periods.slice(-most);
}

function periodsFrom(days: DayHits[], start: (day: Date) => number): Period[] {
  const hits = new Map(days.map((one) => [Date.parse(one.day), one.hits]));
  const [first = 0, last = 0] = [Math.min(...hits.keys()), Math.max(...hits.keys())];
  const found: Period[] = [];
  let current = Number.NaN;
  for (let at = start(new Date(first)); at <= last || start(new Date(at)) === current; at += DAY_MS) {
    const began = start(new Date(at));
    if (began !== current) found.push({ since: dayOf(at), until: dayOf(at), hits: 0 });
    current = began;
    const period = found.at(-1) as Period;
    period.until = dayOf(at);
    period.hits += hits.get(at) ?? 0;
  }
  return found;
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
