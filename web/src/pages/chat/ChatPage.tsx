import { Alert, Button, Group, Text } from "@mantine/core";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Plus, ScrollText } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { isModelMissing, useConversation } from "@/chat/useConversation";
import { Empty } from "@/components/Empty";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";
import { Composer } from "./Composer";
import { ContextMeter } from "./ContextMeter";
import { ModelChoice } from "./ModelChoice";
import { QuestionCard } from "./QuestionCard";
import { RecentList } from "./RecentList";
import { Talk } from "./Talk";

/** Talk to the agent; the address names the conversation, so a reload finds it as it stands. */
export default function ChatPage() {
  const texts = useTexts().chat;
  const { sessionId } = useParams({ strict: false }) as { sessionId?: string };
  const navigate = useNavigate();
  const [model, setModel] = useState<string | undefined>();
  const move = useCallback(
    (id: string) => void navigate({ to: "/chat/{-$sessionId}", params: { sessionId: id }, replace: true }),
    [navigate],
  );
  const talk = useConversation(sessionId, move);
  const { state } = talk;
  const title = state.info?.title || (sessionId ? texts.conversation : texts.newChat);

  useEffect(() => {
    document.title = `${title} · Hermes`;
  }, [title]);

  const choose = async (name: string) => {
    setModel(name);
    if (state.info) await talk.command(`/model ${name}`);
  };

  return (
    <div className={classes.page}>
      <RecentList current={sessionId} />
      <section className={classes.talk} aria-label={texts.conversation}>
        <header className={classes.head}>
          <h1 className={classes.title}>{title}</h1>
          <Group gap="xs" className={classes.tools}>
            <ContextMeter info={state.info} />
            <ModelChoice value={state.info?.model ?? model} onChoose={choose} isDisabled={state.isRunning} />
            {sessionId && state.items.length > 0 && (
              <Button
                component={Link}
                to={`/sessions/${encodeURIComponent(sessionId)}`}
                variant="default"
                size="xs"
                leftSection={<ScrollText size={14} />}
                className={classes.wide}
              >
                {texts.openTranscript}
              </Button>
            )}
            <Button component={Link} to="/chat" variant="default" size="xs" leftSection={<Plus size={14} />}>
              {texts.newChat}
            </Button>
          </Group>
        </header>
        {talk.connection === "lost" && (
          <Alert color="yellow" variant="light" py="xs" role="status">
            {texts.reconnecting}
          </Alert>
        )}
        <Talk
          items={state.items}
          isRunning={state.isRunning}
          status={state.status}
          empty={<Beginning problem={talk.problem} isOpen={Boolean(sessionId)} />}
        />
        {state.items.length > 0 && talk.problem && <Problem error={talk.problem} />}
        {state.questions.map((question) => (
          <QuestionCard
            key={question.requestId}
            question={question}
            onAnswer={(value) => talk.answer(question, value)}
          />
        ))}
        <Composer talk={talk} model={model} />
      </section>
    </div>
  );
}

function Beginning({ problem, isOpen }: { problem: Error | null; isOpen: boolean }) {
  const texts = useTexts().chat;
  if (problem) return <Problem error={problem} />;
  return isOpen ? null : <Empty title={texts.emptyTitle} text={texts.empty} />;
}

function Problem({ error }: { error: Error }) {
  const texts = useTexts().chat;
  const isSetup = isModelMissing(error);
  return (
    <Alert color="red" variant="light" role="alert" title={isSetup ? texts.setupTitle : undefined}>
      <Text size="sm">{error.message}</Text>
      {isSetup && (
        <Text size="sm">
          {texts.setup} <code>{texts.setupCommand}</code>
        </Text>
      )}
    </Alert>
  );
}
