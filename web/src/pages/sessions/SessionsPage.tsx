import { Button, Group, SegmentedControl } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import { BulkActionBar } from "./BulkActionBar";
import { parseFilters, type SessionFilters } from "./filters";
import { ImportButton } from "./ImportButton";
import { PurgeButton } from "./PurgeButton";
import { SearchResults } from "./SearchResults";
import { SessionFilterBar } from "./SessionFilterBar";
import { SessionList } from "./SessionList";
import { useFacets, useSessionList } from "./useSessionList";

const NO_SELECTION: ReadonlySet<string> = new Set();
const LISTED_STATES = ["active", "archived", "trash"] as const;

/** All sessions: filters, search and bulk actions. */
export default function SessionsPage() {
  const { sessions: texts, general } = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Record<string, unknown>;
  const filters = useMemo(() => parseFilters(search), [search]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(NO_SELECTION);
  const facets = useFacets();
  const list = useSessionList(filters);

  const applyFilters = useCallback(
    (next: SessionFilters) => {
      setSelected(NO_SELECTION);
      void navigate({ to: "/sessions", search: next as never, replace: true });
    },
    [navigate],
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
          <SegmentedControl
            aria-label={texts.state}
            size="xs"
            data={stateOptions}
            value={state}
            onChange={(value) => applyFilters({ ...filters, state: value as SessionFilters["state"] })}
          />
        </>
      }
      isFilling
    >
      <SessionFilterBar filters={filters} facets={facets.data} onChange={applyFilters} />
      {selected.size === 0 && !filters.q && list.items.length > 1 && (
        <Group gap="xs">
          <Button
            size="compact-xs"
            variant="subtle"
            onClick={() => setSelected(new Set(list.items.map((one) => one.id)))}
          >
            {texts.selectAll(list.items.length)}
          </Button>
          {state === "trash" && (
            <PurgeButton
              label={texts.emptyTheTrash}
              text={texts.emptyTrashText}
              ids="everything"
              onDone={() => setSelected(NO_SELECTION)}
            />
          )}
        </Group>
      )}
      {selected.size > 0 && <BulkActionBar ids={selected} state={state} onDone={() => setSelected(NO_SELECTION)} />}
      {filters.q ? (
        <SearchResults filters={filters} />
      ) : (
        <SessionList list={list} filters={filters} selected={selected} onSelect={setSelected} />
      )}
    </Page>
  );
}
