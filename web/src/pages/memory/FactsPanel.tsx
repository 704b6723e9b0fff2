import { ActionIcon, Badge, Button, Group, Menu, SegmentedControl, Text, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { MessageSquareQuote, MoreVertical, Pin, Undo2 } from "lucide-react";
import { useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { Fact, FactDetails, FactList } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Panel } from "@/components/Panel";
import { ShortTime } from "@/components/ShortTime";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import classes from "./Memory.module.css";

type State = Fact["state"];
type Action = "pin" | "unpin" | "reject" | "confirm";
const STATES: State[] = ["active", "superseded", "rejected", "stale"];

/** Every fact with its state, why it is believed, and what can be done about it. */
export function FactsPanel() {
  const texts = useTexts().memory;
  const [state, setState] = useState<State>("active");
  const { run, isBusy } = useChange("facts", "memory");
  const { data, error, refetch } = useQuery({
    queryKey: ["facts"],
    queryFn: () => fetchJSON<FactList>("/api/facts"),
  });
  const count = (each: State) => data?.items.filter((fact) => fact.state === each).length ?? 0;
  const shown = data?.items.filter((fact) => fact.state === state) ?? [];
  const undo = () => run(() => sendJSON<FactList>("POST", "/api/facts/undo", {}), texts.undone);
  const undoButton = (
    <Button
      size="xs"
      variant="default"
      leftSection={<Undo2 size={14} />}
      loading={isBusy}
      disabled={!data?.items.length}
      onClick={() => void undo()}
    >
      {texts.undoLast}
    </Button>
  );
  return (
    <Panel title={texts.facts} help={texts.factsHelp} more={undoButton}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      <SegmentedControl
        size="xs"
        mb="sm"
        aria-label={texts.factState}
        value={state}
        onChange={(value) => setState(value as State)}
        data={STATES.map((each) => ({ value: each, label: `${texts.states[each]} ${count(each)}` }))}
        className={classes.states}
      />
      {data && shown.length === 0 && (
        <Text size="sm" c="dimmed">
          {texts.noFacts[state]}
        </Text>
      )}
      <ul className={classes.entries}>
        {shown.map((fact) => (
          <FactRow key={fact.id} fact={fact} />
        ))}
      </ul>
    </Panel>
  );
}

function FactRow({ fact }: { fact: Fact }) {
  const texts = useTexts().memory;
  const [isOpen, setOpen] = useState(false);
  const { run } = useChange("facts", "memory");
  const change = (action: Action) =>
    void run(() => sendJSON<Fact>("POST", `/api/facts/${fact.id}`, { action }), texts.changed);
  const short = fact.text.length > 40 ? `${fact.text.slice(0, 39)}…` : fact.text;
  return (
    <li className={classes.entry}>
      <Group wrap="nowrap" align="flex-start" gap="xs">
        <div className={classes.fact}>
          <Text size="sm" className={classes.text}>
            {fact.is_pinned && <Pin size={13} aria-label={texts.pinned} className={classes.pin} />}
            {fact.text}
          </Text>
          <Group gap={6} mt={2}>
            <Text size="xs" c="dimmed" component="span">
              {texts.about(fact.subject, fact.folder)} · {texts.authors[fact.created_by]} ·{" "}
              <ShortTime at={fact.created_at} /> · {texts.timesUsed(fact.times_used)}
            </Text>
            {fact.superseded_by !== null && fact.state === "superseded" && (
              <Badge size="xs" variant="light" color="gray">
                {texts.supersededBy(fact.superseded_by)}
              </Badge>
            )}
            {fact.state === "active" && !fact.is_in_file && (
              <Badge size="xs" variant="light" color="gray">
                {texts.notInFile}
              </Badge>
            )}
          </Group>
        </div>
        <Tooltip label={texts.why(short)}>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={texts.why(short)}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <MessageSquareQuote size={16} />
          </ActionIcon>
        </Tooltip>
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label={texts.actionsOf(short)}>
              <MoreVertical size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {fact.state === "active" && (
              <>
                <Menu.Item onClick={() => change(fact.is_pinned ? "unpin" : "pin")}>
                  {fact.is_pinned ? texts.unpin : texts.pin}
                </Menu.Item>
                <Menu.Item color="red" onClick={() => change("reject")}>
                  {texts.reject}
                </Menu.Item>
              </>
            )}
            {fact.state !== "active" && <Menu.Item onClick={() => change("confirm")}>{texts.confirm}</Menu.Item>}
          </Menu.Dropdown>
        </Menu>
      </Group>
      {isOpen && <Evidence id={fact.id} />}
    </li>
  );
}

/** The quotations of a fact, each with a link to its message, and the changes of the fact. */
function Evidence({ id }: { id: number }) {
  const texts = useTexts().memory;
  const { data, error, refetch } = useQuery({
    queryKey: ["facts", id],
    queryFn: () => fetchJSON<FactDetails>(`/api/facts/${id}`),
  });
  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingIndicator />;
  return (
    <div className={classes.evidence}>
      {data.evidence.length === 0 && (
        <Text size="sm" c="dimmed">
          {texts.noEvidence[data.created_by]}
        </Text>
      )}
      {data.evidence.map((source) => (
        <blockquote key={`${source.message_id}-${source.quotation}`} className={classes.quotation}>
          {source.problem || source.session_id === null ? (
            <Text size="sm" c="dimmed">
              {texts.evidenceGone(source.problem)}
            </Text>
          ) : (
            <Link
              to="/sessions/$sessionId"
              params={{ sessionId: source.session_id }}
              search={{ message: source.message_id } as never}
            >
              “{source.quotation}”
            </Link>
          )}
          <Text size="xs" c="dimmed">
            <ShortTime at={source.said_at} /> {source.title}
          </Text>
        </blockquote>
      ))}
      <ul className={classes.changes}>
        {data.changes.map((change) => (
          <li key={`${change.at}-${change.what}`}>
            <ShortTime at={change.at} /> {change.what}
          </li>
        ))}
      </ul>
    </div>
  );
}
