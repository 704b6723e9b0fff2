import { Button, Checkbox, Pill, Select, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { Search } from "lucide-react";
import { useEffect, useState } from "react";
import type { Facet, Facets } from "@/api/types";
import { useTexts } from "@/i18n";
import { formatDay, formatInteger } from "@/i18n/format";
import { activeChips, hasSessionFilters, type SessionFilters } from "./filters";
import classes from "./Sessions.module.css";

const SEARCH_DELAY_MS = 180;

interface Props {
  filters: SessionFilters;
  facets: Facets | undefined;
  onChange: (filters: SessionFilters) => void;
}

/** The form of the session filters. */
export function SessionFilterBar({ filters, facets, onChange }: Props) {
  const texts = useTexts().sessions;
  const isSearching = Boolean(filters.q); // the search supports only source and dates as filters
  return (
    <search className={classes.bar} aria-label={texts.filters}>
      <SearchField value={filters.q ?? ""} onChange={(q) => onChange({ ...filters, q })} />
      <FacetSelect
        label={texts.source}
        any={texts.anySource}
        facets={facets?.sources}
        value={filters.source}
        onChange={(source) => onChange({ ...filters, source })}
      />
      {!isSearching && (
        <FacetSelect
          label={texts.model}
          any={texts.anyModel}
          facets={facets?.models}
          value={filters.model}
          onChange={(model) => onChange({ ...filters, model })}
        />
      )}
      {!isSearching && (facets?.tags.length ?? 0) > 0 && (
        <FacetSelect
          label={texts.tag}
          any={texts.anyTag}
          facets={facets?.tags}
          value={filters.tag}
          onChange={(tag) => onChange({ ...filters, tag })}
        />
      )}
      <DateField label={texts.since} value={filters.since} onChange={(since) => onChange({ ...filters, since })} />
      <DateField label={texts.until} value={filters.until} onChange={(until) => onChange({ ...filters, until })} />
      {isSearching ? (
        <Checkbox
          size="xs"
          label={texts.withTools}
          checked={filters.tools === true}
          onChange={(event) => onChange({ ...filters, tools: event.currentTarget.checked || undefined })}
        />
      ) : (
        <Checkbox
          size="xs"
          label={texts.pinnedOnly}
          checked={filters.pinned === true}
          onChange={(event) => onChange({ ...filters, pinned: event.currentTarget.checked || undefined })}
        />
      )}
      {!isSearching &&
        activeChips(filters).map(([name, value]) => {
          const label = texts.chips[name]?.(name === "day" ? formatDay(value) : value) ?? value;
          return (
            <Pill
              key={name}
              withRemoveButton
              onRemove={() => onChange({ ...filters, [name]: undefined })}
              removeButtonProps={{ "aria-label": texts.removeFilter(label), "aria-hidden": false, tabIndex: 0 }}
            >
              {label}
            </Pill>
          );
        })}
      {hasSessionFilters(filters) && (
        <Button size="xs" variant="subtle" onClick={() => onChange({ state: filters.state })}>
          {texts.clear}
        </Button>
      )}
    </search>
  );
}

function SearchField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const texts = useTexts().sessions;
  const [text, setText] = useState(value);
  const tell = useDebouncedCallback(onChange, SEARCH_DELAY_MS);
  useEffect(() => setText(value), [value]);
  return (
    <TextInput
      className={classes.search}
      type="search"
      aria-label={texts.search}
      placeholder={texts.searchPlaceholder}
      leftSection={<Search size={16} />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value);
      }}
    />
  );
}

interface FacetSelectProps {
  label: string;
  any: string;
  facets: Facet[] | undefined;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

function FacetSelect({ label, any, facets = [], value, onChange }: FacetSelectProps) {
  const data = facets.map((one) => ({ value: one.name, label: `${one.name} (${formatInteger(one.count)})` }));
  if (value && !facets.some((one) => one.name === value)) data.unshift({ value, label: value });
  return (
    <Select
      aria-label={label}
      placeholder={any}
      data={data}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      clearable
      clearButtonProps={{ "aria-label": any }}
      searchable={facets.length > 8}
      w={170}
    />
  );
}

function DateField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (day: string | undefined) => void;
}) {
  return (
    <TextInput
      type="date"
      aria-label={label}
      leftSection={<Text size="xs">{label}</Text>}
      leftSectionWidth={48}
      w={190}
      value={value ?? ""}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}
