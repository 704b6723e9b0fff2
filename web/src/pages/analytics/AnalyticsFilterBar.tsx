import { Select, Switch, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON } from "@/api/client";
import type { AnalyticsChoices } from "@/api/types";
import { useTexts } from "@/i18n";
import classes from "./Analytics.module.css";
import { type AnalyticsSearch, FILTER_NAMES, type FilterName, isReversed } from "./ranges";

const CHOICE_NAMES = { source: "sources", model: "models", project: "projects", person: "people" } as const;
const SEARCHABLE_FROM = 8;

interface Props {
  search: AnalyticsSearch;
  today: string | undefined;
  onChange: (search: AnalyticsSearch) => void;
}

/** The period, the filters and the comparison of the page. */
export function AnalyticsFilterBar({ search, today, onChange }: Props) {
  const texts = useTexts().analytics;
  const { data: choices } = useQuery({
    queryKey: ["analytics", "choices"],
    queryFn: () => fetchJSON<AnalyticsChoices>("/api/analytics/choices"),
  });
  return (
    <search className={classes.filters} aria-label={texts.filters}>
      {FILTER_NAMES.map((name) => (
        <FilterSelect
          key={name}
          name={name}
          choices={choices?.[CHOICE_NAMES[name]] ?? []}
          value={search[name]}
          onChange={(value) => onChange({ ...search, [name]: value })}
        />
      ))}
      {search.range === "custom" && (
        <>
          <DayField
            label={texts.firstDay}
            value={search.since}
            maximum={search.until ?? today}
            onChange={(since) => onChange({ ...search, since })}
          />
          <DayField
            label={texts.lastDay}
            value={search.until}
            minimum={search.since}
            maximum={today}
            problem={isReversed(search) ? texts.reversed : undefined}
            onChange={(until) => onChange({ ...search, until })}
          />
        </>
      )}
      <Switch
        size="xs"
        label={texts.compare}
        checked={search.compare !== undefined}
        onChange={(event) => onChange({ ...search, compare: event.currentTarget.checked ? "yes" : undefined })}
      />
    </search>
  );
}

interface FilterSelectProps {
  name: FilterName;
  choices: string[];
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** A filter; with less than two choices there is nothing to choose. */
function FilterSelect({ name, choices, value, onChange }: FilterSelectProps) {
  const texts = useTexts().analytics;
  const data = value && !choices.includes(value) ? [value, ...choices] : choices;
  return (
    <Select
      size="xs"
      className={classes.filter}
      aria-label={texts.filterNames[name]}
      placeholder={texts.anyOf[name]}
      data={data}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      disabled={data.length === 0}
      clearable
      clearButtonProps={{ "aria-label": texts.anyOf[name] }}
      searchable={choices.length > SEARCHABLE_FROM}
      comboboxProps={{ width: "max-content", position: "bottom-start" }}
    />
  );
}

interface DayFieldProps {
  label: string;
  value: string | undefined;
  minimum?: string;
  maximum?: string;
  problem?: string;
  onChange: (day: string | undefined) => void;
}

function DayField({ label, value, minimum, maximum, problem, onChange }: DayFieldProps) {
  return (
    <TextInput
      size="xs"
      type="date"
      aria-label={label}
      value={value ?? ""}
      min={minimum}
      max={maximum}
      error={problem}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}
