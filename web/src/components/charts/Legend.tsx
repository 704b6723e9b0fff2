import classes from "./Legend.module.css";

export interface LegendEntry {
  name: string;
  /** What is shown if the name is long. */
  label?: string;
  colour: string;
}

interface Props {
  label: string;
  entries: LegendEntry[];
  hidden?: ReadonlySet<string>;
  onToggle?: (name: string) => void;
}

/** The series of a chart; a click hides one or shows it again. */
export function Legend({ label, entries, hidden, onToggle }: Props) {
  return (
    <ul className={classes.legend} aria-label={label}>
      {entries.map(({ name, label: shown, colour }) => (
        <li key={name}>
          <button
            type="button"
            title={name}
            aria-pressed={!hidden?.has(name)}
            className={classes.entry}
            onClick={() => onToggle?.(name)}
          >
            <span className={classes.swatch} style={{ background: colour }} aria-hidden />
            {shown ?? name}
          </button>
        </li>
      ))}
    </ul>
  );
}
