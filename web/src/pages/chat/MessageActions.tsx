import { ActionIcon, Group, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, GitBranch, type LucideIcon, Pencil, Quote, RotateCcw } from "lucide-react";
import type { ReactNode } from "react";
import type { TurnEnd } from "@/chat/turns";
import type { PromptVersions } from "@/chat/usePromptVersions";
import { CopyButton } from "@/components/CopyButton";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";

/** What can be done with messages; the functions report their errors themselves. */
export interface MessageHandlers {
  onRetry: (turn: TurnEnd) => void;
  onBranch: (turn: TurnEnd) => void;
  onQuote: (text: string) => void;
  onResend: (messageId: number, text: string) => void;
}

interface AnswerProps {
  text: string;
  turn: TurnEnd;
  handlers: MessageHandlers;
  isRunning: boolean;
}

/** Copy, retry, branch and quote, below the last answer of a turn. */
export function AnswerActions({ text, turn, handlers, isRunning }: AnswerProps) {
  const texts = useTexts().chat.actions;
  const canRetry = turn.isLast || turn.prompt?.messageId != null;
  return (
    <Toolbar isLast={turn.isLast}>
      <CopyButton text={text} label={texts.copyAnswer} variant="subtle" />
      {canRetry && turn.prompt && (
        <Action label={texts.retry} icon={RotateCcw} onClick={() => handlers.onRetry(turn)} isDisabled={isRunning} />
      )}
      <Action label={texts.branch} icon={GitBranch} onClick={() => handlers.onBranch(turn)} isDisabled={isRunning} />
      <Action label={texts.quote} icon={Quote} onClick={() => handlers.onQuote(selectedPart(text))} />
    </Toolbar>
  );
}

interface PromptProps {
  text: string;
  isLast: boolean;
  onEdit: (() => void) | null;
  versions: PromptVersions | undefined;
}

/** Copy, edit and the arrows between versions, below a prompt. */
export function PromptActions({ text, isLast, onEdit, versions }: PromptProps) {
  const texts = useTexts().chat.actions;
  return (
    <Toolbar isLast={isLast || versions !== undefined}>
      {versions && <VersionArrows versions={versions} />}
      <CopyButton text={text} label={texts.copyPrompt} variant="subtle" />
      {onEdit && <Action label={texts.edit} icon={Pencil} onClick={onEdit} />}
    </Toolbar>
  );
}

function Toolbar({ isLast, children }: { isLast: boolean; children: ReactNode }) {
  return (
    <Group
      gap={2}
      className={classes.actions}
      data-visible={isLast}
      role="group"
      aria-label={useTexts().chat.actions.label}
    >
      {children}
    </Group>
  );
}

interface ActionProps {
  label: string;
  icon: LucideIcon;
  onClick: () => void;
  isDisabled?: boolean;
}

function Action({ label, icon: Icon, onClick, isDisabled = false }: ActionProps) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" size="sm" aria-label={label} onClick={onClick} disabled={isDisabled}>
        <Icon size={14} />
      </ActionIcon>
    </Tooltip>
  );
}

function VersionArrows({ versions }: { versions: PromptVersions }) {
  const texts = useTexts().chat.actions;
  const { selected, session_ids: ids } = versions;
  return (
    <Group gap={0} role="group" aria-label={texts.versions} wrap="nowrap">
      <VersionLink label={texts.previous} icon={ChevronLeft} sessionId={ids[selected - 1]} />
      <Text size="xs" c="dimmed">
        {texts.position(selected + 1, ids.length)}
      </Text>
      <VersionLink label={texts.next} icon={ChevronRight} sessionId={ids[selected + 1]} />
    </Group>
  );
}

interface LinkProps {
  label: string;
  icon: LucideIcon;
  sessionId: string | undefined;
}

function VersionLink({ label, icon: Icon, sessionId }: LinkProps) {
  if (!sessionId) {
    return (
      <ActionIcon variant="subtle" color="gray" size="sm" aria-label={label} disabled>
        <Icon size={14} />
      </ActionIcon>
    );
  }
  return (
    <ActionIcon
      component={Link}
      to={`/chat/${encodeURIComponent(sessionId)}`}
      variant="subtle"
      color="gray"
      size="sm"
      aria-label={label}
    >
      <Icon size={14} />
    </ActionIcon>
  );
}

/** The selected text if it is a part of the answer, else the whole answer. */
function selectedPart(answer: string): string {
  const selected = window.getSelection()?.toString().trim() ?? "";
  return selected && answer.includes(selected) ? selected : answer;
}
