import { Button, Group, Text, Textarea } from "@mantine/core";
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { UserItem } from "@/chat/conversationState";
import { splitUploads } from "@/chat/uploads";
import type { PromptVersions } from "@/chat/usePromptVersions";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";
import { FileChip } from "./FileChip";
import { type MessageHandlers, PromptActions } from "./MessageActions";

interface Props {
  item: UserItem;
  isRunning: boolean;
  isLast: boolean;
  handlers: MessageHandlers;
  versions: PromptVersions | undefined;
}

/** A message of the user, with its actions. */
export function PromptView({ item, isRunning, isLast, handlers, versions }: Props) {
  const texts = useTexts().chat;
  const [isEditing, setEditing] = useState(false);
  const { messageId } = item;
  const parts = splitUploads(item.text);
  if (isEditing && messageId !== null) {
    return (
      <PromptForm
        text={parts.text}
        onClose={() => setEditing(false)}
        onSend={(text) => handlers.onResend(messageId, [text, ...parts.files.map((one) => one.path)].join("\n"))}
      />
    );
  }
  return (
    <div className={classes.prompt}>
      <div className={classes.user} data-waiting={item.isQueued}>
        {parts.text}
        {parts.files.map((one) => (
          <FileChip key={one.path} name={one.name} />
        ))}
        {item.images.map((address) => (
          <a key={address} href={address} target="_blank" rel="noreferrer">
            <img src={address} alt={texts.sentImage} className={classes.picture} />
          </a>
        ))}
        {item.imageCount > 0 && <div className={classes.status}>{texts.images(item.imageCount)}</div>}
        {item.isQueued && <div className={classes.status}>{texts.queued}</div>}
      </div>
      {!item.isQueued && (
        <PromptActions
          text={parts.text}
          isLast={isLast}
          onEdit={messageId !== null && !isRunning ? () => setEditing(true) : null}
          versions={versions}
        />
      )}
    </div>
  );
}

interface FormProps {
  text: string;
  onSend: (text: string) => void;
  onClose: () => void;
}

function PromptForm({ text, onSend, onClose }: FormProps) {
  const texts = useTexts().chat.actions;
  const [edited, setEdited] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const send = (event: FormEvent | KeyboardEvent) => {
    event.preventDefault();
    if (!edited.trim()) return;
    onClose();
    onSend(edited.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") onClose();
    if (event.key === "Enter" && !event.shiftKey) send(event);
  };
  return (
    <form className={classes.editing} onSubmit={send}>
      <Textarea
        aria-label={texts.editField}
        autosize
        maxRows={12}
        value={edited}
        onChange={(event) => setEdited(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        ref={field}
      />
      <Group gap="xs" mt="xs" justify="flex-end">
        <Text size="xs" c="dimmed" flex={1}>
          {texts.editHelp}
        </Text>
        <Button size="xs" variant="default" onClick={onClose}>
          {texts.cancel}
        </Button>
        <Button size="xs" type="submit" disabled={!edited.trim()}>
          {texts.resend}
        </Button>
      </Group>
    </form>
  );
}
