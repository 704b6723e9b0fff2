import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import type { EditList, FileEdit } from "@/api/types";
import { useTexts } from "@/i18n";
import classes from "./Transcript.module.css";

const MAX_EDITS = 200;

/** The files that a conversation changed; each leads to all edits of that file. */
export function ChangedFiles({ id }: { id: string }) {
  const texts = useTexts().sessions.transcript;
  const { data } = useQuery({
    queryKey: ["edits", "session", id],
    queryFn: ({ signal }) =>
      fetchJSON<EditList>(`/api/edits?${new URLSearchParams({ session_id: id, limit: String(MAX_EDITS) })}`, {
        signal,
      }),
    retry: false,
  });
  const files = new Map<string, FileEdit[]>();
  for (const edit of data?.items ?? []) files.set(edit.path, [...(files.get(edit.path) ?? []), edit]);
  if (files.size === 0) return null;
  return (
    <section className={classes.card} aria-label={texts.changedFiles}>
      <Text fw={600} size="sm">
        {texts.changedFiles}
      </Text>
      <ul className={classes.tree}>
        {[...files].map(([path, edits]) => (
          <li key={path}>
            <Link to="/edits" search={{ path } as never} className={classes.node} title={path}>
              <span>{path.slice(path.lastIndexOf("/") + 1)}</span>
              <small>{texts.editsOfFile(edits.length, sum(edits, "added_lines"), sum(edits, "removed_lines"))}</small>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function sum(edits: FileEdit[], name: "added_lines" | "removed_lines"): number {
  return edits.reduce((total, edit) => total + edit[name], 0);
}
