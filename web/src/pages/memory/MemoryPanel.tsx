import { ActionIcon, Button, Group, Progress, Stack, Text, Textarea, Tooltip } from "@mantine/core";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { MemoryFile } from "@/api/types";
import { errorMessage, showError } from "@/components/notices";
import { Panel } from "@/components/Panel";
import { onSubmit, useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { formatInteger } from "@/i18n/format";
import classes from "./Memory.module.css";
import { useMemoryChange } from "./useMemoryChange";

const NEARLY_FULL = 0.9;
const NEW = -1;

interface Props {
  file: MemoryFile;
  title?: string;
  /** The resource that stores the file. */
  resource?: string;
}

/** One file of the memory with its entries. */
export function MemoryPanel({ file, title, resource = "/api/memory" }: Props) {
  const texts = useTexts().memory;
  const change = useMemoryChange(file, resource);
  const [edited, setEdited] = useState<number | null>(null);
  const name = title ?? texts.files[file.target] ?? file.target;
  const share = file.characters / file.max_characters;
  const { list, add } = useReturnedFocus(edited);
  const close = () => setEdited(null);
  const save = async (index: number, text: string) => {
    const entries = index === NEW ? [...file.entries, text] : file.entries.with(index, text);
    await change(entries, texts.saved);
    close();
  };
  return (
    <Panel title={name} help={file.path}>
      <Text size="xs" c="dimmed" mb={4}>
        {texts.used(formatInteger(file.characters), formatInteger(file.max_characters))}
      </Text>
      <Progress
        value={Math.min(share, 1) * 100}
        size="sm"
        mb="sm"
        aria-label={`${texts.usedLabel}: ${name}`}
        color={share > NEARLY_FULL ? "orange" : "teal"}
      />
      {share > NEARLY_FULL && (
        <Text size="sm" mb="sm">
          {texts.full}
        </Text>
      )}
      {file.entries.length === 0 && edited === null && (
        <Text size="sm" c="dimmed">
          {texts.none}
        </Text>
      )}
      <ul className={classes.entries} ref={list}>
        {file.entries.map((text, index) => (
          <li key={text} className={classes.entry}>
            {edited === index ? (
              <EntryForm label={texts.entry} text={text} onSave={(value) => save(index, value)} onCancel={close} />
            ) : (
              <EntryView
                text={text}
                onEdit={() => setEdited(index)}
                onRemove={() => void change(file.entries.toSpliced(index, 1), texts.removed).catch(showError)}
              />
            )}
          </li>
        ))}
      </ul>
      {edited === NEW ? (
        <EntryForm label={texts.newEntry(name)} text="" onSave={(value) => save(NEW, value)} onCancel={close} />
      ) : (
        <Button
          ref={add}
          mt="sm"
          size="xs"
          variant="default"
          leftSection={<Plus size={14} />}
          onClick={() => setEdited(NEW)}
        >
          {texts.add}
        </Button>
      )}
    </Panel>
  );
}

/** Give the focus to the button that opened the form when it closes; the form replaces that button. */
function useReturnedFocus(edited: number | null) {
  const list = useRef<HTMLUListElement>(null);
  const add = useRef<HTMLButtonElement>(null);
  const before = useRef(edited);
  useEffect(() => {
    const closed = before.current;
    before.current = edited;
    if (closed === null || edited !== null) return;
    const opener = closed === NEW ? add.current : list.current?.children[closed]?.querySelector("button");
    opener?.focus();
  }, [edited]);
  return { list, add };
}

function EntryView({ text, onEdit, onRemove }: { text: string; onEdit: () => void; onRemove: () => void }) {
  const texts = useTexts().memory;
  const short = text.length > 40 ? `${text.slice(0, 39)}…` : text;
  return (
    <Group wrap="nowrap" align="flex-start" gap="xs">
      <Text size="sm" flex={1} className={classes.text}>
        {text}
      </Text>
      <Tooltip label={texts.edit(short)}>
        <ActionIcon variant="subtle" color="gray" aria-label={texts.edit(short)} onClick={onEdit}>
          <Pencil size={16} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={texts.remove(short)}>
        <ActionIcon variant="subtle" color="red" aria-label={texts.remove(short)} onClick={onRemove}>
          <Trash2 size={16} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}

interface FormProps {
  label: string;
  text: string;
  onSave: (text: string) => Promise<void>;
  onCancel: () => void;
}

function EntryForm({ label, text, onSave, onCancel }: FormProps) {
  const texts = useTexts().general;
  const [draft, setDraft] = useState(text);
  const { run, isBusy } = useChange();
  const [problem, setProblem] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const refuse = (error: unknown) => {
    setProblem(errorMessage(error));
    field.current?.focus();
  };
  return (
    <form onSubmit={onSubmit(() => run(() => onSave(draft.trim()), undefined, refuse))}>
      <Stack gap="xs" mt="xs">
        <Textarea
          aria-label={label}
          autosize
          minRows={2}
          maxRows={12}
          ref={field}
          error={problem}
          value={draft}
          onChange={(event) => {
            setDraft(event.currentTarget.value);
            setProblem(null);
          }}
        />
        <Group gap="xs">
          <Button type="submit" size="xs" loading={isBusy} disabled={!draft.trim() || draft.trim() === text}>
            {texts.save}
          </Button>
          <Button size="xs" variant="default" onClick={onCancel}>
            {texts.cancel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
