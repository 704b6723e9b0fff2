import { useContext, useId } from "react";
import { formatNumber } from "./format";
import { Glyph } from "./Glyph";
import { CatalogueContext } from "./Medal";
import type { Achievement } from "./types";
import { useTexts } from "./useTexts";
import { countMatches, SORTS, type Sort, STATES, type ViewState } from "./viewState";

interface Props {
  all: readonly Achievement[];
  viewState: ViewState;
  change(part: Partial<ViewState>): void;
}

/** The search, filters and sort order of badges. */
export function BadgeFilterBar({ all, viewState, change }: Props) {
  const { texts } = useTexts();
  const { categories } = useContext(CatalogueContext);
  const counts = countMatches(all, viewState);
  return (
    <div className="ach-filters">
      <div className="ach-filters-top">
        <Search value={viewState.search} onChange={(search) => change({ search })} />
        <SortSelect value={viewState.sort} onChange={(sort) => change({ sort })} />
      </div>
      <fieldset className="ach-pills">
        <legend>{texts.stateLabel}</legend>
        {STATES.map((state) => (
          <Pill
            key={state}
            label={texts.states[state]}
            count={counts.states[state]}
            isOn={viewState.state === state}
            onClick={() => change({ state })}
          />
        ))}
      </fieldset>
      <fieldset className="ach-pills ach-pills-scroll">
        <legend>{texts.categoryLabel}</legend>
        {[{ id: "all", name: texts.allCategories }, ...categories].map(({ id, name }) => (
          <Pill
            key={id}
            label={name}
            count={counts.categories[id] ?? 0}
            isOn={viewState.category === id}
            onClick={() => change({ category: id })}
          />
        ))}
      </fieldset>
    </div>
  );
}

function Search({ value, onChange }: { value: string; onChange(value: string): void }) {
  const { texts } = useTexts();
  return (
    <div className="ach-search">
      <Glyph name="search" />
      <input
        type="search"
        value={value}
        aria-label={texts.search}
        placeholder={texts.searchPlaceholder}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      {value && (
        <button type="button" aria-label={texts.clearSearch} onClick={() => onChange("")}>
          <Glyph name="close" />
        </button>
      )}
    </div>
  );
}

function SortSelect({ value, onChange }: { value: Sort; onChange(value: Sort): void }) {
  const { texts } = useTexts();
  const id = useId();
  return (
    <div className="ach-sort">
      <label htmlFor={id}>{texts.sortLabel}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as Sort)}>
        {SORTS.map((one) => (
          <option key={one} value={one}>
            {texts.sorts[one]}
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
  const { locale } = useTexts();
  return (
    <button type="button" className="ach-pill" aria-pressed={isOn} data-empty={count === 0} onClick={onClick}>
      {label} <span>{formatNumber(count, locale)}</span>
    </button>
  );
}
