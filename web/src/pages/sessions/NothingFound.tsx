import { Button, Group, List } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { GroupedHits } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { useTexts } from "@/i18n";
import { activeChips, type SessionFilters, withoutFilters } from "./filters";

interface Props {
  filters: SessionFilters;
  page: GroupedHits | undefined;
  onChange: (filters: SessionFilters) => void;
}

/** What to try if a search has found nothing. */
export function NothingFound({ filters, page, onChange }: Props) {
  const texts = useTexts().sessions;
  const q = filters.q ?? "";
  const hasFilters = activeChips(filters).length > 0 || filters.pinned === true || filters.state === "archived";
  const plain = q.replaceAll(/"|(?<=\S)\*(?=\s|$)/g, "").trim();
  const kept = q.replaceAll(/(^|\s)-\S+/g, " ").trim();
  return (
    <EmptyState
      title={texts.nothingFound}
      text={
        <List size="sm" ta="start" c="dimmed">
          {texts.nothingFoundHelp.map((help) => (
            <List.Item key={help}>{help}</List.Item>
          ))}
          {page && !page.has_meaning && <List.Item>{texts.meaningHelp}</List.Item>}
        </List>
      }
    >
      <Group gap="xs" justify="center">
        {hasFilters && (
          <Try
            label={texts.tryWithoutFilters}
            onClick={() => onChange({ ...withoutFilters(filters), state: undefined })}
          />
        )}
        {!filters.tools && <Try label={texts.tryTools} onClick={() => onChange({ ...filters, tools: true })} />}
        {plain && plain !== q && (
          <Try label={texts.tryWords(plain)} onClick={() => onChange({ ...filters, q: plain })} />
        )}
        {kept && kept !== q.trim() && (
          <Try label={texts.tryWords(kept)} onClick={() => onChange({ ...filters, q: kept })} />
        )}
        <Button component={Link} to="/ask" search={{ q } as never} size="xs" variant="default">
          {texts.askInstead}
        </Button>
      </Group>
    </EmptyState>
  );
}

function Try({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Button size="xs" variant="default" onClick={onClick}>
      {label}
    </Button>
  );
}
