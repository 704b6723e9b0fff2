import { Button, Progress, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import type { EditList } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { EditRow } from "./EditRow";
import classes from "./Edits.module.css";

const FILLING_MS = 2000;
const SHOWN = 100;

/** The latest edits of all agents, or those of one file. */
export default function EditsPage() {
  const { edits: texts, general } = useTexts();
  const { path } = useSearch({ strict: false }) as { path?: unknown };
  const file = typeof path === "string" ? path : "";
  const { data, error, refetch } = useQuery({
    queryKey: ["edits", file],
    queryFn: () => fetchJSON<EditList>(`/api/edits?${new URLSearchParams({ path: file, limit: String(SHOWN) })}`),
    refetchInterval: (query) => (query.state.data?.filling ? FILLING_MS : false),
  });
  const filling = data?.filling;
  return (
    <Page title={file ? texts.ofFile : general.pages.edits} lead={file || texts.lead}>
      {file && (
        <Button component={Link} {...({ to: "/edits" } as object)} size="xs" variant="default" className={classes.all}>
          {texts.all}
        </Button>
      )}
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {filling && (
        <div>
          <Text size="sm">{texts.filling(filling.done, filling.total)}</Text>
          <Progress
            value={(100 * filling.done) / Math.max(filling.total, 1)}
            size="sm"
            aria-label={texts.fillingLabel}
          />
        </div>
      )}
      {data?.items.length === 0 && !filling && <EmptyState title={texts.none} text={texts.noneHelp} />}
      <ul className={classes.edits}>
        {data?.items.map((edit) => (
          <li key={`${edit.message_id}-${edit.path}`}>
            <EditRow edit={edit} withFile={!file} />
          </li>
        ))}
      </ul>
    </Page>
  );
}
