import { Button, Group, SegmentedControl } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { whole } from "@/i18n/format";
import { Bulk } from "./Bulk";
import { FilterBar } from "./FilterBar";
import { type Filters, parsed } from "./filters";
import { ImportButton } from "./ImportButton";
import { PurgeButton } from "./PurgeButton";
import { SearchResults } from "./SearchResults";
import { SessionList } from "./SessionList";
import { useFacets, useSessionList } from "./useSessionList";

const NOTHING: ReadonlySet<string> = new Set();
const STATES = ["active", "archived", "trash"] as const;

/** Every conversation: to be narrowed down, searched, put in order and looked at. */
export default function SessionsPage() {
  const { sessions: texts, general } = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Record<string, unknown>;
  const filters = useMemo(() => parsed(search), [search]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(NOTHING);
  const facets = useFacets();
  const list = useSessionList(filters);

  const change = useCallback(
    (next: Filters) => {
      setChosen(NOTHING);
      void navigate({ to: "/sessions", search: next as never, replace: true });
    },
    [navigate],
  );

  const state = filters.state ?? "active";
  const counts = facets.data?.counts;
  // Charts lead here with what they count: all of it, or what is not in the trash.
  const shown = state === "kept" || state === "all" ? [...STATES, state] : STATES;
  const names = shown.map((value) => ({
    value,
    label:
      counts && value in counts
        ? `${texts.states[value]} ${whole(counts[value as keyof typeof counts])}`
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
            data={names}
            value={state}
            onChange={(value) => change({ ...filters, state: value as Filters["state"] })}
          />
        </>
      }
      isFilling
    >
      <FilterBar filters={filters} facets={facets.data} onChange={change} />
      {chosen.size === 0 && !filters.q && list.items.length > 1 && (
        <Group gap="xs">
          <Button
            size="compact-xs"
            variant="subtle"
            onClick={() => setChosen(new Set(list.items.map((one) => one.id)))}
          >
            {texts.selectAll(list.items.length)}
          </Button>
          {state === "trash" && (
            <PurgeButton
              label={texts.emptyTheTrash}
              text={texts.emptyTrashText}
              ids="everything"
              onDone={() => setChosen(NOTHING)}
            />
          )}
        </Group>
      )}
      {chosen.size > 0 && <Bulk ids={chosen} state={state} onDone={() => setChosen(NOTHING)} />}
      {filters.q ? (
        <SearchResults filters={filters} />
      ) : (
        <SessionList list={list} filters={filters} chosen={chosen} onChoose={setChosen} />
      )}
    </Page>
  );
}
