import { ActionIcon, Alert, Button, Group, Text, Tooltip } from "@mantine/core";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Plus, ScrollText } from "lucide-react";
import { useCallback, useEffect, useMemo, useState } from "react";
import type { ConversationClient, WorkingFolder } from "@/chat/conversationClient";
import { quotation } from "@/chat/turns";
import { conversationTitle } from "@/chat/uploads";
import { useConversation } from "@/chat/useConversation";
import { usePromptVersions } from "@/chat/usePromptVersions";
import { useReadyNotice } from "@/chat/useReadyNotice";
import { EmptyState } from "@/components/EmptyState";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { ChangedFiles } from "./ChangedFiles";
import classes from "./ChatPage.module.css";
import { Composer } from "./Composer";
import { ContextMeter } from "./ContextMeter";
import { ConversationLog } from "./ConversationLog";
import { FolderSelect } from "./FolderSelect";
import type { MessageHandlers } from "./MessageActions";
import { ModelSelect } from "./ModelSelect";
import { ModeSelect } from "./ModeSelect";
import { QuestionCard } from "./QuestionCard";
import { RecentConversations } from "./RecentConversations";
import { SetupCard, useModelSetup } from "./SetupCard";
import { TodoPanel } from "./TodoPanel";

/** The chat page; the URL names the session, so a reload reopens it. */
export default function ChatPage() {
  const texts = useTexts().chat;
  const { sessionId } = useParams({ strict: false }) as { sessionId?: string };
  const navigate = useNavigate();
  const [model, setModel] = useState<string | undefined>();
  const [folder, setFolder] = useState<WorkingFolder | undefined>();
  const showSession = useCallback(
    (id: string, isOther: boolean) =>
      void navigate({ to: "/chat/{-$sessionId}", params: { sessionId: id }, replace: !isOther }),
    [navigate],
  );
  const conversation = useConversation(sessionId, showSession, folder);
  const { state, client } = conversation;
  const versions = usePromptVersions(conversation);
  const handlers = useMessageHandlers(client);
  const setup = useModelSetup().data;
  const title = conversationTitle(state) || (sessionId ? texts.conversation : texts.newChat);
  const hasNews = useReadyNotice(state, title, texts.notify);

  useEffect(() => {
    document.title = `${hasNews ? "● " : ""}${title} · Hermes`;
  }, [title, hasNews]);

  const selectModel = async (name: string) => {
    setModel(name);
    if (state.info) await client.runCommand(`/model ${name}`);
  };

  const selectFolder = async (choice: WorkingFolder) => {
    if (state.info) await client.changeFolder(choice);
    else setFolder(choice);
  };

  return (
    <div className={classes.page}>
      <RecentConversations current={sessionId} />
      <section className={classes.conversation} aria-label={texts.conversation}>
        <header className={classes.head}>
          <h1 className={classes.title}>{title}</h1>
          <Group gap="xs" className={classes.tools}>
            <ContextMeter info={state.info} />
            <ModeSelect info={state.info} onChoose={(mode) => client.call("session.permissions", { mode })} />
            <ChangedFiles conversation={conversation} />
            <FolderSelect value={state.info?.cwd ?? folder?.cwd} onChoose={selectFolder} isDisabled={state.isRunning} />
            <ModelSelect
              value={state.info?.model ?? model}
              onChoose={selectModel}
              request={client.request}
              isDisabled={state.isRunning}
            />
            {sessionId && state.items.length > 0 && (
              <Tooltip label={texts.openTranscript}>
                <ActionIcon
                  component={Link}
                  to={`/sessions/${encodeURIComponent(sessionId)}`}
                  variant="default"
                  size={30}
                  aria-label={texts.openTranscript}
                >
                  <ScrollText size={14} />
                </ActionIcon>
              </Tooltip>
            )}
            <Button component={Link} to="/chat" variant="default" size="xs" leftSection={<Plus size={14} />}>
              {texts.newChat}
            </Button>
          </Group>
        </header>
        {conversation.connection === "lost" && (
          <Alert color="yellow" variant="light" py="xs" role="status">
            {texts.reconnecting}
          </Alert>
        )}
        {setup && !setup.is_ready && <SetupCard setup={setup} />}
        <ConversationLog
          items={state.items}
          isRunning={state.isRunning}
          status={state.status}
          handlers={handlers}
          versions={versions}
          empty={<EmptyConversation problem={conversation.problem} isHidden={Boolean(sessionId) || !setup?.is_ready} />}
        />
        {state.items.length > 0 && conversation.problem && <ErrorNotice error={conversation.problem} />}
        {state.questions.map((question) => (
          <QuestionCard
            key={question.payload.request_id}
            question={question}
            onAnswer={(value) => client.answer(question, value)}
          />
        ))}
        <TodoPanel conversation={conversation} />
        <Composer key={conversation.opened.count} conversation={conversation} model={model} />
      </section>
    </div>
  );
}

/** The actions of messages, with stable functions: messages are drawn again only if they change. */
function useMessageHandlers(client: ConversationClient): MessageHandlers {
  return useMemo(
    () => ({
      onRetry: ({ isLast, prompt }) => {
        const asked = isLast ? client.retry() : client.branch(prompt?.messageId ?? null, prompt?.text);
        asked.catch(showError);
      },
      onBranch: ({ nextPromptId }) => void client.branch(nextPromptId).catch(showError),
      onQuote: (text) => client.insertText(quotation(text)),
      onResend: (messageId, text) =>
        void client.branch(messageId, text).catch((error) => {
          client.insertText(text);
          showError(error);
        }),
    }),
    [client],
  );
}

function EmptyConversation({ problem, isHidden }: { problem: Error | null; isHidden: boolean }) {
  const texts = useTexts().chat;
  if (problem) return <ErrorNotice error={problem} />;
  return isHidden ? null : <EmptyState title={texts.emptyTitle} text={texts.empty} />;
}

function ErrorNotice({ error }: { error: Error }) {
  return (
    <Alert color="red" variant="light" role="alert">
      <Text size="sm">{error.message}</Text>
    </Alert>
  );
}
