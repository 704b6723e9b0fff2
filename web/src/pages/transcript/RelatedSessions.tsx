import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON } from "@/api/client";
import type { SessionDetail, TreeNode } from "@/api/types";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { buildTree, type SessionBranch } from "./sessionTree";
import classes from "./Transcript.module.css";

/** The tree of sessions related to this one. */
export function RelatedSessions({ session }: { session: SessionDetail }) {
  const texts = useTexts().sessions.transcript;
  const { data } = useQuery({
    queryKey: ["session", session.id, "tree"],
    queryFn: () => fetchJSON<{ nodes: TreeNode[] }>(`/api/sessions/${encodeURIComponent(session.id)}/tree`),
  });
  if (!data || data.nodes.length < 2) return null;
  return (
    <section className={classes.card} aria-label={texts.tree}>
      <Text fw={600} size="sm">
        {texts.tree}
      </Text>
      <Text size="xs" c="dimmed">
        {texts.treeHelp}
      </Text>
      <TreeLevel branches={buildTree(data.nodes)} />
    </section>
  );
}

function TreeLevel({ branches }: { branches: SessionBranch[] }) {
  const texts = useTexts();
  return (
    <ul className={classes.tree}>
      {branches.map(({ node, children }) => (
        <li key={node.id}>
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: node.id }}
            className={classes.node}
            aria-current={node.is_current ? "page" : undefined}
          >
            <span>{sessionTitle(node, texts.general.untitled)}</span>
            <small>
              {texts.sessions.kinds[node.kind] ?? node.kind} · {texts.general.messages(node.message_count)}
            </small>
          </Link>
          {children.length > 0 && <TreeLevel branches={children} />}
        </li>
      ))}
    </ul>
  );
}
