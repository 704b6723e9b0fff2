import { useContext, useId } from "react";
import { type Choice, countsOf, SORTS, type Sort, STATES } from "./choosing";
import { amount } from "./format";
import { Glyph } from "./Glyph";
import { CatalogueContext } from "./Medal";
import type { Achievement } from "./types";
import { useWords } from "./useWords";

interface Props {
  all: readonly Achievement[];
  choice: Choice;
  change(part: Partial<Choice>): void;
}

/** What is to be seen, and in which order. */
export function FilterBar({ all, choice, change }: Props) {
  const { words } = useWords();
  const { categories } = useContext(CatalogueContext);
  const counts = countsOf(all, choice);
  return (
    <div className="ach-filters">
      <div className="ach-filters-top">
        <Search value={choice.search} onChange={(search) => change({ search })} />
        <SortChoice value={choice.sort} onChange={(sort) => change({ sort })} />
      </div>
      <fieldset className="ach-pills">
        <legend>{words.stateLabel}</legend>
        {STATES.map((state) => (
          <Pill
            key={state}
            label={words.states[state]}
            count={counts.states[state]}
            isOn={choice.state === state}
            onClick={() => change({ state })}
          />
        ))}
      </fieldset>
      <fieldset className="ach-pills ach-pills-scroll">
        <legend>{words.categoryLabel}</legend>
        {[{ id: "all", name: words.allCategories }, ...categories].map(({ id, name }) => (
          <Pill
            key={id}
            label={name}
            count={counts.categories[id] ?? 0}
            isOn={choice.category === id}
            onClick={() => change({ category: id })}
          />
        ))}
      </fieldset>
    </div>
  );
}

function Search({ value, onChange }: { value: string; onChange(value: string): void }) {
  const { words } = useWords();
  return (
    <div className="ach-search">
      <Glyph name="search" />
      <input
        type="search"
        value={value}
        aria-label={words.search}
        placeholder={words.searchPlaceholder}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      {value && (
        <button type="button" aria-label={words.clearSearch} onClick={() => onChange("")}>
          <Glyph name="close" />
        </button>
      )}
    </div>
  );
}

function SortChoice({ value, onChange }: { value: Sort; onChange(value: Sort): void }) {
  const { words } = useWords();
  const id = useId();
  return (
    <div className="ach-sort">
      <label htmlFor={id}>{words.sortLabel}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as Sort)}>
        {SORTS.map((one) => (
          <option key={one} value={one}>
            {words.sorts[one]}
          </option>
        ))}
      </select>
    </div>
  );
}

interface PillProps {
  label: string;
  count: number;
  isOn: boolean;
  onClick(): void;
}

function Pill({ label, count, isOn, onClick }: PillProps) {
  const { locale } = useWords();
  return (
    <button type="button" className="ach-pill" aria-pressed={isOn} data-empty={count === 0} onClick={onClick}>
      {label} <span>{amount(count, locale)}</span>
    </button>
  );
}
