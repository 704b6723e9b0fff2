import { amount } from "./format";
import type { Counted } from "./types";
import { useWords } from "./useWords";

interface BarsProps {
  title: string;
  values: number[];
  /** What stands below a bar. */
  label(place: number): string;
  says(place: number, count: string): string;
}

/** Counts side by side. */
export function Bars({ title, values, label, says }: BarsProps) {
  const { locale } = useWords();
  const most = Math.max(1, ...values);
  const told = values.map((value, place) => ({ place, value, text: says(place, amount(value, locale)) }));
  return (
    <figure className="ach-bars">
      <figcaption className="ach-small">{title}</figcaption>
      <ul>
        {told.map(({ place, value, text }) => (
          <li key={place} title={text} data-most={value === most}>
            <span className="ach-bar" style={{ height: `${Math.max(value > 0 ? 3 : 0, (100 * value) / most)}%` }} />
            <span className="ach-bar-label" aria-hidden="true">
              {label(place)}
            </span>
            <span className="ach-unseen">{text}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** The most frequent of a kind, with how often. */
export function Ranked({ title, counted }: { title: string; counted: Counted[] }) {
  const { locale } = useWords();
  const most = counted[0]?.times ?? 1;
  if (counted.length === 0) return null;
  return (
    <section className="ach-panel">
      <h3>{title}</h3>
      <ol className="ach-ranked">
        {counted.map(({ name, times }) => (
          <li key={name}>
            <span>{name}</span>
            <b>{amount(times, locale)}</b>
            <div className="ach-track" aria-hidden="true">
              <div className="ach-fill" style={{ width: `${(100 * times) / most}%` }} />
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
