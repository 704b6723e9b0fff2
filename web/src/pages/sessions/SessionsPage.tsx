import { SegmentedControl } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import { BulkActionBar } from "./BulkActionBar";
import { ColumnMenu } from "./ColumnMenu";
import { type ColumnId, chosenColumns, DEFAULT_COLUMNS } from "./columns";
import { parseFilters, type SessionFilters, toggleSort } from "./filters";
import { ImportButton } from "./ImportButton";
import { PurgeButton } from "./PurgeButton";
import { SavedViews } from "./SavedViews";
import { SearchResults } from "./SearchResults";
import { SessionFilterBar } from "./SessionFilterBar";
import { SessionTable } from "./SessionTable";
import { useFacets, useSessionList } from "./useSessionList";

const NO_SELECTION: ReadonlySet<string> = new Set();
const LISTED_STATES = ["active", "archived", "trash"] as const;

/** All sessions: a table with filters, search and bulk actions. */
export default function SessionsPage() {
  const { sessions: texts, general } = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Record<string, unknown>;
  const filters = useMemo(() => parseFilters(search), [search]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(NO_SELECTION);
  const [columnIds, setColumnIds] = useLocalStorage<ColumnId[]>({
    key: "hermes.sessions.columns",
    defaultValue: [...DEFAULT_COLUMNS],
    getInitialValueInEffect: false,
  });
  const columns = useMemo(() => chosenColumns(columnIds), [columnIds]);
  const [isTyping, setTyping] = useState(false);
  const facets = useFacets();
  const list = useSessionList(filters, columnIds.includes("tool_errors"));

  const applyFilters = useCallback(
    (next: SessionFilters) => {
      setSelected(NO_SELECTION);
      // Every filter is a step of the browser's history; the letters of a search are one step.
      const isTyping = Boolean(filters.q) && Boolean(next.q) && filters.q !== next.q;
      void navigate({ to: "/sessions", search: next as never, replace: isTyping });
    },
    [navigate, filters.q],
  );

  const state = filters.state ?? "active";
  const counts = facets.data?.counts;
  // Links from charts may ask for all sessions, or for all that are not in the trash.
  const shown = state === "kept" || state === "all" ? [...LISTED_STATES, state] : LISTED_STATES;
  const stateOptions = shown.map((value) => ({
    value,
    label:
      counts && value in counts
        ? `${texts.states[value]} ${formatInteger(counts[value as keyof typeof counts])}`
        : texts.states[value],
  }));

  return (
    <Page
      title={texts.title}
      lead={list.total === null ? undefined : general.sessions(list.total)}
      actions={
        <>
          <ImportButton />
          {state === "trash" && list.items.length > 0 && (
            <PurgeButton
              label={texts.emptyTheTrash}
              text={texts.emptyTrashText}
              ids="everything"
              onDone={() => setSelected(NO_SELECTION)}
            />
          )}
          <SegmentedControl
            aria-label={texts.state}
            size="xs"
            data={stateOptions}
            value={state}
            onChange={(value) =>
              applyFilters({ ...filters, state: value === "active" ? undefined : (value as SessionFilters["state"]) })
            }
          />
        </>
      }
      isFilling
    >
      <SessionFilterBar filters={filters} facets={facets.data} onChange={applyFilters} onTyping={setTyping}>
        <SavedViews filters={filters} onOpen={applyFilters} />
        {!filters.q && <ColumnMenu chosen={columnIds} onChange={setColumnIds} />}
      </SessionFilterBar>
      {selected.size > 0 && <BulkActionBar ids={selected} state={state} onDone={() => setSelected(NO_SELECTION)} />}
      {filters.q ? (
        <SearchResults filters={filters} isTyping={isTyping} onChange={applyFilters} />
      ) : (
        <SessionTable
          list={list}
          columns={columns}
          filters={filters}
          selected={selected}
          onSelect={setSelected}
          onSort={(key) => applyFilters(toggleSort(filters, key))}
        />
      )}
    </Page>
  );
}
