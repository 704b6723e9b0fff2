import { Alert, Button, Checkbox, Loader, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { MessageCircleQuestion } from "lucide-react";
import { useEffect, useState } from "react";
import { ApiError, fetchJSON, sendJSON } from "@/api/client";
import type { Answer, AnswerState, Quotation } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { Page } from "@/components/Page";
import { ShortTime } from "@/components/ShortTime";
import { onSubmit, useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import classes from "./Ask.module.css";

const POLL_MS = 500;
const MAX_CHARACTERS = 500;

/** Questions to the history: an answer whose sentences cite messages, or the messages only. */
export default function AskPage() {
  const { ask: texts, general } = useTexts();
  const navigate = useNavigate();
  const { q } = useSearch({ strict: false }) as { q?: unknown };
  const given = typeof q === "string" ? q : "";
  const [question, setQuestion] = useState(given);
  const [withModel, setWithModel] = useState(true);
  const [number, setNumber] = useState<number | null>(null);
  const { run, isBusy } = useChange();
  useEffect(() => setQuestion(given), [given]);

  const ask = async () => {
    if (!question.trim()) return;
    await run(async () => {
      const body = { question, with_model: withModel };
      const asked = await sendJSON<AnswerState>("POST", "/api/answers", body);
      setNumber(asked.number);
      void navigate({ to: "/ask", search: { q: question } as never, replace: true });
    });
  };
  return (
    <Page title={general.pages.ask} lead={texts.lead}>
      <form onSubmit={onSubmit(ask)} className={classes.form}>
        <TextInput
          type="search"
          aria-label={texts.question}
          placeholder={texts.placeholder}
          leftSection={<MessageCircleQuestion size={16} />}
          maxLength={MAX_CHARACTERS}
          value={question}
          onChange={(event) => setQuestion(event.currentTarget.value)}
          className={classes.question}
          data-autofocus
        />
        <Button type="submit" loading={isBusy} disabled={!question.trim()}>
          {texts.ask}
        </Button>
        <Checkbox
          size="xs"
          label={texts.quotationsOnly}
          checked={!withModel}
          onChange={(event) => setWithModel(!event.currentTarget.checked)}
          className={classes.option}
        />
      </form>
      {number === null ? (
        <EmptyState title={texts.emptyTitle} text={texts.empty} />
      ) : (
        <AnsweredQuestion key={number} number={number} />
      )}
    </Page>
  );
}

function AnsweredQuestion({ number }: { number: number }) {
  const texts = useTexts().ask;
  const { run } = useChange();
  const path = `/api/answers/${number}`;
  const { data, error, refetch } = useQuery({
    queryKey: ["answers", number],
    queryFn: () => fetchJSON<AnswerState>(path),
    refetchInterval: ({ state }) => (state.data?.is_running === false ? false : POLL_MS),
    retry: (count, problem) => !(problem instanceof ApiError) && count < 3,
  });
  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data || data.is_running) {
    return (
      <div role="status" className={classes.waiting}>
        <Loader size={18} />
        <Text size="sm">{data?.step || texts.searching}</Text>
        <Button size="compact-xs" variant="default" onClick={() => void run(() => sendJSON("DELETE", path))}>
          {texts.stop}
        </Button>
      </div>
    );
  }
  if (!data.answer) {
    return (
      <Alert color="red" variant="light" role="alert">
        {data.error}
      </Alert>
    );
  }
  return <AnswerView answer={data.answer} />;
}

function AnswerView({ answer }: { answer: Answer }) {
  const texts = useTexts().ask;
  const { sentences, quotations } = answer;
  if (quotations.length === 0) return <EmptyState title={texts.nothing} text={texts.nothingHelp} />;
  const numbered = quotations.map((quotation, index) => ({ quotation, number: index + 1 }));
  const cited = new Set(sentences.flatMap((sentence) => sentence.sources));
  const used = cited.size > 0 ? numbered.filter(({ number }) => cited.has(number)) : numbered;
  const others = numbered.filter((one) => !used.includes(one));
  return (
    <div className={classes.result}>
      {answer.corrections.map(({ written, used }) => (
        <Text key={written} size="sm" c="dimmed">
          {texts.corrected(written, used)}
        </Text>
      ))}
      {answer.failure && (
        <Alert color="red" variant="light" role="alert">
          {texts.failed(answer.failure)}
        </Alert>
      )}
      {answer.note && <Alert variant="light">{texts.note(answer.note)}</Alert>}
      <section aria-label={texts.answer} role="status">
        {sentences.length > 0 && (
          <p className={classes.answer}>
            {sentences.map((sentence) => (
              <span key={`${sentence.text} ${sentence.sources.join()}`}>
                {sentence.text}
                {sentence.sources.map((source) => (
                  <Citation key={source} number={source} quotation={quotations[source - 1]} />
                ))}{" "}
              </span>
            ))}
          </p>
        )}
        {sentences.length === 0 && answer.model && !answer.failure && <Text fw={600}>{texts.notContained}</Text>}
        {answer.model && !answer.failure && (
          <Text size="xs" c="dimmed">
            {texts.answeredBy(answer.model, quotations.length)}
            {answer.left_out > 0 && ` ${texts.leftOut(answer.left_out)}`}
          </Text>
        )}
      </section>
      <Quotations title={cited.size > 0 ? texts.cited : texts.nearest} items={used} />
      {others.length > 0 && (
        <details className={classes.others}>
          <summary>{texts.others(others.length)}</summary>
          <Quotations title={texts.othersTitle} items={others} isHidden />
        </details>
      )}
    </div>
  );
}

/** The number of a quotation; it opens the message. */
function Citation({ number, quotation }: { number: number; quotation: Quotation | undefined }) {
  const texts = useTexts().ask;
  if (!quotation) return null;
  return (
    <Link
      {...messageOf(quotation)}
      className={classes.citation}
      aria-label={texts.citation(number)}
      title={quotation.text}
    >
      {number}
    </Link>
  );
}

interface QuotationsProps {
  title: string;
  items: { quotation: Quotation; number: number }[];
  isHidden?: boolean;
}

function Quotations({ title, items, isHidden }: QuotationsProps) {
  const { ask: texts, sessions } = useTexts();
  return (
    <section aria-label={title} data-list-keys>
      {!isHidden && (
        <Title order={2} size="h5" mb="xs">
          {title}
        </Title>
      )}
      <ol className={classes.quotations}>
        {items.map(({ quotation, number }) => (
          <li key={number}>
            <Link {...messageOf(quotation)} className={classes.quotation} data-list-item>
              <span className={classes.head}>
                <span className={classes.number}>{number}</span>
                <strong>{quotation.title || texts.untitled}</strong>
                <span className={classes.meta}>
                  {sessions.transcript.roles[quotation.role] ?? quotation.role} · <ShortTime at={quotation.at} />
                </span>
              </span>
              <span className={classes.text}>{quotation.text}</span>
            </Link>
          </li>
        ))}
      </ol>
    </section>
  );
}

function messageOf(quotation: Quotation) {
  return {
    to: "/sessions/$sessionId",
    params: { sessionId: quotation.session_id },
    search: { message: quotation.message_id } as never,
  } as const;
}
