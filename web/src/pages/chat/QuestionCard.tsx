import { Button, Group, PasswordInput, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { AgentQuestion, ApprovalAnswer } from "@/chat/conversationState";
import type { RpcSchemas } from "@/chat/rpc";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { ApprovalForm } from "./ApprovalForm";
import classes from "./ChatPage.module.css";

interface Props {
  question: AgentQuestion;
  onAnswer: (value: string | ApprovalAnswer) => Promise<unknown>;
}

/** A question of the agent: an approval, a clarification or a secret. */
export function QuestionCard({ question, onAnswer }: Props) {
  const texts = useTexts().chat.question;
  const answer = (value: string | ApprovalAnswer) => onAnswer(value).catch(showError);
  const titles = {
    "approval.request": texts.approve,
    "clarify.request": texts.clarify,
    "secret.request": texts.secret,
  };
  const title = titles[question.type];
  return (
    <section className={classes.question} aria-label={title} role="alertdialog">
      <Text fw={650}>{title}</Text>
      {question.type === "approval.request" && <ApprovalForm question={question.payload} onAnswer={answer} />}
      {question.type === "clarify.request" && <ClarifyForm question={question.payload} onAnswer={answer} />}
      {question.type === "secret.request" && <SecretForm prompt={question.payload.prompt} onAnswer={answer} />}
    </section>
  );
}

/** The state of a form with one text field. */
function useTextForm(onAnswer: (value: string) => void) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAnswer(text);
  };
  return { text, setText, submit };
}

interface ClarifyProps {
  question: RpcSchemas["ClarifyQuestion"];
  onAnswer: (value: string) => void;
}

function ClarifyForm({ question, onAnswer }: ClarifyProps) {
  const texts = useTexts().chat.question;
  const { text, setText, submit } = useTextForm(onAnswer);
  return (
    <>
      <Text size="sm" mb="xs">
        {question.question}
      </Text>
      <Group gap="xs" mb="xs">
        {question.choices.map((choice) => (
          <Button key={choice} size="xs" variant="default" onClick={() => onAnswer(choice)}>
            {choice}
          </Button>
        ))}
      </Group>
      <form onSubmit={submit}>
        <Group gap="xs">
          <TextInput flex={1} aria-label={texts.answer} value={text} onChange={(e) => setText(e.currentTarget.value)} />
          <Button type="submit" disabled={!text}>
            {texts.submit}
          </Button>
        </Group>
      </form>
    </>
  );
}

function SecretForm({ prompt, onAnswer }: { prompt: string; onAnswer: (value: string) => void }) {
  const texts = useTexts().chat.question;
  const { text, setText, submit } = useTextForm(onAnswer);
  return (
    <form onSubmit={submit}>
      <PasswordInput
        label={prompt}
        description={texts.secretHelp}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        mb="xs"
      />
      <Group gap="xs">
        <Button type="submit" size="xs" disabled={!text}>
          {texts.submit}
        </Button>
        <Button size="xs" variant="default" onClick={() => onAnswer("")}>
          {texts.skip}
        </Button>
      </Group>
    </form>
  );
}
