import { formatNumber } from "./format";
import type { RankedItem } from "./types";
import { useTexts } from "./useTexts";

interface BarsProps {
  title: string;
  values: number[];
  /** The label below a bar. */
  label(index: number): string;
  describe(index: number, count: string): string;
}

/** A bar chart of counts. */
export function Bars({ title, values, label, describe }: BarsProps) {
  const { locale } = useTexts();
  const highest = Math.max(1, ...values);
  const bars = values.map((value, index) => ({ index, value, text: describe(index, formatNumber(value, locale)) }));
  return (
    <figure className="ach-bars">
      <figcaption className="ach-small">{title}</figcaption>
      <ul>
        {bars.map(({ index, value, text }) => (
          <li key={index} title={text} data-most={value === highest}>
            <span className="ach-bar" style={{ height: `${Math.max(value > 0 ? 3 : 0, (100 * value) / highest)}%` }} />
            <span className="ach-bar-label" aria-hidden="true">
              {label(index)}
            </span>
            <span className="ach-visually-hidden">{text}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** A ranked list with counts. */
export function Ranked({ title, counted }: { title: string; counted: RankedItem[] }) {
  const { locale } = useTexts();
  const highest = counted[0]?.times ?? 1;
  if (counted.length === 0) return null;
  return (
    <section className="ach-panel">
      <h3>{title}</h3>
      <ol className="ach-ranked">
        {counted.map(({ name, times }) => (
          <li key={name}>
            <span>{name}</span>
            <b>{formatNumber(times, locale)}</b>
            <div className="ach-track" aria-hidden="true">
              <div className="ach-fill" style={{ width: `${(100 * times) / highest}%` }} />
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
