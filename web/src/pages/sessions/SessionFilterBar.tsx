import { Button, Checkbox, NativeSelect, Pill, Popover, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { ListFilter, Search } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useState } from "react";
import type { Facet, Facets } from "@/api/types";
import { moveInList } from "@/app/keys/listKeys";
import { useTexts } from "@/i18n";
import { formatDay, formatInteger } from "@/i18n/format";
import {
  activeChips,
  BAR_FILTERS,
  hasSessionFilters,
  type Role,
  type SessionFilters,
  SORT_KEYS,
  type SortKey,
  withoutFilters,
} from "./filters";
import classes from "./Sessions.module.css";

const SEARCH_DELAY_MS = 180;
const DAY_FILTERS = new Set(["day", "since", "until"]);

interface Props {
  filters: SessionFilters;
  facets: Facets | undefined;
  onChange: (filters: SessionFilters) => void;
  children?: ReactNode;
}

interface SearchProps {
  /** The last word of the search may be incomplete. */
  onTyping: (isTyping: boolean) => void;
}

/** The search and the filters, in one row; what does not fit is in a popover, what is set is below. */
export function SessionFilterBar({ filters, facets, onChange, onTyping, children }: Props & SearchProps) {
  const texts = useTexts().sessions;
  return (
    <search className={classes.filters} aria-label={texts.filters}>
      <div className={classes.bar}>
        <SearchField
          value={filters.q ?? ""}
          onChange={(q) => onChange({ ...filters, q: q || undefined })}
          onTyping={onTyping}
        />
        <div className={classes.wide}>
          <BarFields filters={filters} facets={facets} onChange={onChange} />
        </div>
        <FilterPopover filters={filters} facets={facets} onChange={onChange} />
        {children}
      </div>
      <FilterChips filters={filters} onChange={onChange} />
    </search>
  );
}

/** The fields that a wide window shows in the bar. */
function BarFields({ filters, facets, onChange, isNested }: Props & { isNested?: boolean }) {
  const texts = useTexts().sessions;
  return (
    <>
      <FacetSelect
        label={texts.source}
        any={texts.anySource}
        facets={facets?.sources}
        value={filters.source}
        onChange={(source) => onChange({ ...filters, source })}
        isNested={isNested}
      />
      <FacetSelect
        label={texts.model}
        any={texts.anyModel}
        facets={facets?.models}
        value={filters.model}
        onChange={(model) => onChange({ ...filters, model })}
        isNested={isNested}
      />
      <FacetSelect
        label={texts.folder}
        any={texts.anyFolder}
        facets={facets?.folders}
        value={filters.folder}
        onChange={(folder) => onChange({ ...filters, folder })}
        isNested={isNested}
      />
    </>
  );
}

function FilterPopover({ filters, facets, onChange }: Props) {
  const texts = useTexts().sessions;
  const [isOpen, setOpen] = useState(false);
  const count = activeChips(filters).filter(([name]) => !(BAR_FILTERS as readonly string[]).includes(name)).length;
  const number = count + Number(filters.pinned === true) + Number(filters.tools === true);
  return (
    <Popover
      opened={isOpen}
      onChange={setOpen}
      position="bottom-end"
      width={300}
      trapFocus
      shadow="md"
      transitionProps={{ duration: 0 }}
    >
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<ListFilter size={15} />}
          onClick={() => setOpen(!isOpen)}
          className={classes.barButton}
        >
          {number ? texts.moreFiltersCount(number) : texts.moreFilters}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          <div className={classes.narrow}>
            <BarFields filters={filters} facets={facets} onChange={onChange} isNested />
            <SortFields filters={filters} onChange={onChange} />
          </div>
          <FacetSelect
            label={texts.branch}
            any={texts.anyBranch}
            facets={facets?.branches}
            value={filters.branch}
            onChange={(branch) => onChange({ ...filters, branch })}
            isNested
          />
          <FacetSelect
            label={texts.tag}
            any={texts.anyTag}
            facets={facets?.tags}
            value={filters.tag}
            onChange={(tag) => onChange({ ...filters, tag })}
            isNested
          />
          <DateField label={texts.since} value={filters.since} onChange={(since) => onChange({ ...filters, since })} />
          <DateField label={texts.until} value={filters.until} onChange={(until) => onChange({ ...filters, until })} />
          <Checkbox
            size="xs"
            label={texts.pinnedOnly}
            checked={filters.pinned === true}
            onChange={(event) => onChange({ ...filters, pinned: event.currentTarget.checked || undefined })}
          />
          <Checkbox
            size="xs"
            label={texts.withTools}
            checked={filters.tools === true}
            onChange={(event) => onChange({ ...filters, tools: event.currentTarget.checked || undefined })}
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** The order of the list where the table has no headings. */
function SortFields({ filters, onChange }: Pick<Props, "filters" | "onChange">) {
  const texts = useTexts().sessions;
  const value = `${filters.sort ?? "last_active"} ${filters.order ?? "desc"}`;
  const data = SORT_KEYS.flatMap((key) =>
    (["desc", "asc"] as const).map((order) => ({
      value: `${key} ${order}`,
      label: `${texts.columns[key]}: ${texts.orders[order]}`,
    })),
  );
  return (
    <NativeSelect
      aria-label={texts.sort}
      data={data}
      value={value}
      onChange={(event) => {
        const [sort, order] = event.currentTarget.value.split(" ") as [SortKey, "asc" | "desc"];
        onChange({
          ...filters,
          sort: sort === "last_active" ? undefined : sort,
          order: order === "asc" ? order : undefined,
        });
      }}
    />
  );
}

function FilterChips({ filters, onChange }: Pick<Props, "filters" | "onChange">) {
  const texts = useTexts().sessions;
  if (!hasSessionFilters({ ...filters, q: undefined })) return null;
  return (
    <div className={classes.chips}>
      {activeChips(filters).map(([name, value]) => {
        const shown = DAY_FILTERS.has(name) ? formatDay(value) : name === "role" ? texts.roles[value as Role] : value;
        const label = texts.chips[name]?.(shown) ?? shown;
        return (
          <Pill
            key={name}
            withRemoveButton
            className={(BAR_FILTERS as readonly string[]).includes(name) ? classes.narrow : undefined}
            onRemove={() => onChange({ ...filters, [name]: undefined })}
            removeButtonProps={{ "aria-label": texts.removeFilter(label), "aria-hidden": false, tabIndex: 0 }}
          >
            {label}
          </Pill>
        );
      })}
      {(["pinned", "tools"] as const).map((name) => {
        if (!filters[name]) return null;
        const label = name === "pinned" ? texts.pinnedOnly : texts.withTools;
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
      <Button size="compact-xs" variant="subtle" onClick={() => onChange({ ...withoutFilters(filters), q: undefined })}>
        {texts.clear}
      </Button>
    </div>
  );
}

interface SearchFieldProps extends SearchProps {
  value: string;
  onChange: (text: string) => void;
}

/** Searches while one types; Enter ends the last word, the arrow down goes to the results, Escape clears. */
function SearchField({ value, onChange, onTyping }: SearchFieldProps) {
  const texts = useTexts().sessions;
  const [text, setText] = useState(value);
  const tell = useDebouncedCallback(onChange, SEARCH_DELAY_MS);
  useEffect(() => setText(value), [value]);
  const type = (next: string) => {
    setText(next);
    onTyping(next.endsWith(next.trim()));
    tell(next);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      onTyping(false);
      tell.flush();
    } else if (event.key === "Escape" && text) {
      event.preventDefault();
      type("");
      tell.flush();
    } else if (event.key === "ArrowDown" && moveInList(1)) event.preventDefault();
  };
  return (
    <TextInput
      className={classes.search}
      type="search"
      aria-label={texts.search}
      placeholder={texts.searchPlaceholder}
      leftSection={<Search size={16} />}
      value={text}
      onChange={(event) => type(event.currentTarget.value)}
      onKeyDown={press}
    />
  );
}

interface FacetSelectProps {
  label: string;
  any: string;
  facets: Facet[] | undefined;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  /** In a popover, which a click into another layer would close. */
  isNested?: boolean;
}

function FacetSelect({ label, any, facets = [], value, onChange, isNested }: FacetSelectProps) {
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
      limit={200}
      comboboxProps={isNested ? { withinPortal: false } : { width: "max-content", position: "bottom-start" }}
      maxDropdownHeight={320}
      className={classes.facet}
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
      value={value ?? ""}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}
