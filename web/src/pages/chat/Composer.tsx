import { ActionIcon, Button, FileButton, Group, Text, Textarea, Tooltip } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { ArrowUp, Paperclip, Square } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { isCommand, type SendMode } from "@/chat/conversationClient";
import { type Attachment, EMPTY_DRAFT, withUnsent } from "@/chat/drafts";
import { conversationTitle } from "@/chat/uploads";
import type { useConversation } from "@/chat/useConversation";
import { useDraft } from "@/chat/useDraft";
import { errorMessage, showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { uploadAttachment } from "./attachments";
import classes from "./ChatPage.module.css";
import { FileChip } from "./FileChip";
import { NotifyButton } from "./NotifyButton";
import { optionId, SlashMenu } from "./SlashMenu";
import { useSlashMenu } from "./useSlashMenu";
import { VoiceButton } from "./VoiceButton";

interface Props {
  conversation: ReturnType<typeof useConversation>;
  model: string | undefined;
}

/** The input for messages and attachments. */
export function Composer({ conversation, model }: Props) {
  const texts = useTexts().chat;
  const { draft, change } = useDraft(conversation.opened.id);
  const { text, files } = draft;
  const [isDropping, setDropping] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const { isRunning, returned } = conversation.state;
  const { client } = conversation;

  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current?.focus(); // on a phone the keyboard would cover the page
  }, []);

  useEffect(() => {
    if (!returned.text && returned.files.length === 0) return;
    change((now) => withUnsent(now, returned));
    client.clearReturned();
    field.current?.focus();
  }, [returned, client, change]);

  const setText = (next: string) => change((now) => ({ ...now, text: next }));

  const send = async (mode: SendMode, typed = text) => {
    const sent = isCommand(typed.trim()) ? { text, files: [] } : draft; // files wait for a message
    const lines = [typed.trim(), ...sent.files.filter((one) => !one.isImage).map((one) => one.path)].filter(Boolean);
    if (!typed.trim() && files.length > 0) lines.unshift(files[0]?.isImage ? texts.imagesOnly : texts.filesOnly);
    if (lines.length === 0) return;
    const title = conversationTitle(conversation.state) || texts.newChat;
    change((now) => (sent === draft ? EMPTY_DRAFT : { ...now, text: "" }));
    try {
      const images = sent.files.filter((one) => one.isImage);
      await client.send(lines.join("\n"), mode, model, images);
    } catch (error) {
      const isShown = change((now) => withUnsent(now, sent));
      showError(isShown ? error : new Error(texts.sendFailed(title, errorMessage(error))));
    }
    field.current?.focus();
  };

  const menuId = useId();
  const menu = useSlashMenu(text, client.request, setText, (line) => void send("steer", line));
  const isMenuOpen = menu.items.length > 0;

  const addFiles = async (chosen: File[]) => {
    for (const file of chosen) {
      try {
        const found = await uploadAttachment(file);
        change((now) => ({ ...now, files: [...now.files, found] }));
      } catch (error) {
        notifications.show({ color: "red", message: texts.uploadFailed(file.name, errorMessage(error)) });
      }
    }
  };

  const insertSpeech = (spoken: string) => {
    change((now) => ({
      ...now,
      text: now.text && !/\s$/.test(now.text) ? `${now.text} ${spoken}` : now.text + spoken,
    }));
    field.current?.focus();
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    void addFiles([...event.dataTransfer.files]);
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    void addFiles([...event.clipboardData.files]);
  };
  const stop = () => void client.call("session.interrupt").catch(showError);
  const onKeyDown = (event: KeyboardEvent) => {
    if (menu.handleKey(event)) return;
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape" && isRunning) stop();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void send("steer");
  };
  const removeFile = (file: Attachment) =>
    change((now) => ({ ...now, files: now.files.filter((one) => one.path !== file.path) }));

  return (
    <>
      {isMenuOpen && <SlashMenu id={menuId} items={menu.items} index={menu.index} onChoose={menu.choose} />}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: files can also be chosen with the button */}
      <div
        className={classes.composer}
        data-dropping={isDropping}
        onDragOver={(event) => {
          event.preventDefault();
          setDropping(true);
        }}
        onDragLeave={() => setDropping(false)}
        onDrop={onDrop}
      >
        {files.length > 0 && (
          <Group gap={6} pb={6}>
            {files.map((file) => (
              <FileChip
                key={file.path}
                name={file.name}
                preview={file.preview}
                onRemove={() => removeFile(file)}
                removeLabel={texts.detach(file.name)}
              />
            ))}
          </Group>
        )}
        <Textarea
          ref={field}
          aria-label={texts.composer}
          aria-autocomplete="list"
          aria-controls={isMenuOpen ? menuId : undefined}
          aria-activedescendant={isMenuOpen ? optionId(menuId, menu.index) : undefined}
          placeholder={isRunning ? texts.placeholderRunning : texts.placeholder}
          variant="unstyled"
          autosize
          minRows={1}
          maxRows={12}
          px="xs"
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            menu.resetSelection();
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <Group justify="space-between">
          <Group gap={4}>
            <FileButton onChange={(chosen) => void addFiles(chosen)} multiple>
              {(props) => (
                <Tooltip label={texts.attach}>
                  <ActionIcon {...props} variant="subtle" color="gray" aria-label={texts.attach}>
                    <Paperclip size={18} />
                  </ActionIcon>
                </Tooltip>
              )}
            </FileButton>
            <VoiceButton onText={insertSpeech} />
            <NotifyButton />
          </Group>
          {isDropping && <Text size="sm">{texts.dropHere}</Text>}
          <Group gap="xs">
            {isRunning && text.trim() && (
              <>
                <Button size="xs" variant="default" onClick={() => void send("queue")}>
                  {texts.queue}
                </Button>
                <Button size="xs" onClick={() => void send("steer")}>
                  {texts.steer}
                </Button>
              </>
            )}
            {isRunning ? (
              <Button size="xs" color="red" variant="light" leftSection={<Square size={12} />} onClick={stop}>
                {texts.stop}
              </Button>
            ) : (
              <ActionIcon
                aria-label={texts.send}
                onClick={() => void send("steer")}
                disabled={!text.trim() && files.length === 0}
              >
                <ArrowUp size={18} />
              </ActionIcon>
            )}
          </Group>
        </Group>
      </div>
    </>
  );
}
