import { ActionIcon, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronUp, Search } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { fetchJSON, withQuery } from "@/api/client";
import type { Matches } from "@/api/types";
import { type SearchProblem, searchProblem } from "@/components/searchTerms";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import classes from "./Transcript.module.css";

const FIND_DELAY_MS = 250;

interface Props {
  sessionId: string;
  find: string;
  message: number | undefined;
  onFind: (text: string) => void;
  onShow: (message: number) => void;
}

/** Find in the conversation, on the server; Enter and Shift+Enter go to the next and previous message. */
export function FindField({ sessionId, find, message, onFind, onShow }: Props) {
  const texts = useTexts().sessions.transcript;
  const [text, setText] = useState(find);
  const tell = useDebouncedCallback(onFind, FIND_DELAY_MS);
  useEffect(() => setText(find), [find]);
  const problem = searchProblem(find);
  const canFind = problem === null;
  const { data, error, isPlaceholderData, isLoading } = useQuery({
    queryKey: ["session", sessionId, "find", find],
    queryFn: ({ signal }) =>
      fetchJSON<Matches>(withQuery(`/api/sessions/${encodeURIComponent(sessionId)}/find`, { q: find }), { signal }),
    placeholderData: keepPreviousData,
    enabled: canFind,
    retry: false,
  });
  const ids = canFind && !error ? (data?.message_ids ?? NO_MATCHES) : NO_MATCHES;
  const current = message === undefined ? -1 : ids.indexOf(message);
  useFirstMatch(find, isPlaceholderData ? NO_MATCHES : ids, message, onShow);

  const go = (step: number) => {
    const next = ids[(Math.max(current, step > 0 ? -1 : 0) + step + ids.length) % ids.length];
    if (next !== undefined) onShow(next);
  };
  const none = useNoMatchesText(isLoading, error, problem);
  const matchOf = data?.is_capped ? texts.matchOfFirst : texts.matchOf;
  const position = current < 0 ? "–" : formatInteger(current + 1);
  const countText = ids.length ? matchOf(position, formatInteger(ids.length)) : none;
  return (
    <Group gap={4} wrap="nowrap" className={classes.find}>
      <TextInput
        type="search"
        size="xs"
        aria-label={texts.find}
        placeholder={texts.find}
        leftSection={<Search size={14} />}
        value={text}
        className={classes.findInput}
        onChange={(event) => {
          setText(event.currentTarget.value);
          tell(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          if (event.key === "Escape" && text) {
            event.preventDefault();
            setText("");
            onFind("");
          }
        }}
      />
      {find.trim() && (
        <>
          <Text size="xs" c="dimmed" role="status" className={classes.findCount}>
            {countText}
          </Text>
          <StepButton label={texts.previousMatch} isOff={ids.length === 0} onClick={() => go(-1)}>
            <ChevronUp size={16} />
          </StepButton>
          <StepButton label={texts.nextMatch} isOff={ids.length === 0} onClick={() => go(1)}>
            <ChevronDown size={16} />
          </StepButton>
        </>
      )}
    </Group>
  );
}

const NO_MATCHES: number[] = [];

/** Why there are no matches. */
function useNoMatchesText(isLoading: boolean, error: Error | null, problem: SearchProblem | null): string {
  const texts = useTexts().sessions.transcript;
  if (isLoading) return texts.finding;
  if (error) return texts.findFailed;
  return problem === "long" ? texts.findTooLong : texts.noMatches;
}

/** Show the first match of a new search, at or after the message that is shown. */
function useFirstMatch(find: string, ids: number[], message: number | undefined, onShow: (message: number) => void) {
  const shown = useRef(message === undefined ? "" : find);
  useEffect(() => {
    if (ids.length === 0 || shown.current === find) return;
    shown.current = find;
    if (message !== undefined && ids.includes(message)) return;
    const next = ids.find((id) => id >= (message ?? 0)) ?? ids[0];
    if (next !== undefined) onShow(next);
  }, [find, ids, message, onShow]);
}

interface StepProps {
  label: string;
  isOff: boolean;
  onClick: () => void;
  children: React.ReactNode;
}

function StepButton({ label, isOff, onClick, children }: StepProps) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" aria-label={label} disabled={isOff} onClick={onClick}>
        {children}
      </ActionIcon>
    </Tooltip>
  );
}
