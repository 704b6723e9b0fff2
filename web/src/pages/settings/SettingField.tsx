import {
  Button,
  Code,
  Group,
  NumberInput,
  PasswordInput,
  Select,
  Switch,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useEffect, useState } from "react";
import { sendJSON } from "@/api/client";
import type { PendingChange, SettingItem } from "@/api/types";
import { errorMessage } from "@/components/notices";
import { onSubmit, useChange } from "@/components/useChange";
import { type Texts, useTexts } from "@/i18n";

/** The changed setting, or the change that waits for a confirmation. */
type Answer = SettingItem | PendingChange;
type SettingValue = string | number | boolean | string[];

/** A form field for one setting. */
export function SettingField({ item }: { item: SettingItem }) {
  const texts = useTexts();
  const { run, isBusy } = useChange("settings", "gateway", "pending-changes");
  const [problem, setProblem] = useState<string | null>(null);
  const [draft, setDraft] = useState<SettingValue>(initialValue(item));
  useEffect(() => {
    setDraft(initialValue(item));
    setProblem(null);
  }, [item]);
  const resource = item.section === "platforms" ? "/api/gateway/platforms/options" : "/api/settings";
  const path = `${resource}/${encodeURIComponent(item.name)}`;
  const isReadOnly = item.origin === "environment";
  const isChanged = JSON.stringify(draft) !== JSON.stringify(initialValue(item));

  const doneText = (answer: Answer) =>
    "code" in answer ? texts.settings.requested(item.name) : texts.settings.saved(item.name);
  /** Send a change; a refusal is shown at the field. */
  const send = async (change: () => Promise<Answer>): Promise<boolean> => {
    const isDone = await run(change, doneText, (error) => setProblem(errorMessage(error)));
    if (isDone) setProblem(null);
    return isDone;
  };
  const save = async (value: SettingValue) => {
    const isSaved = await send(() => sendJSON<Answer>("PUT", path, { value }));
    // A secret is not kept in the page, and a requested value does not apply yet.
    if (isSaved && (item.is_secret || item.only_by_hand)) setDraft(initialValue(item));
  };
  const submit = onSubmit(() => save(draft));

  return (
    <form onSubmit={submit}>
      <Field
        item={item}
        draft={draft}
        isDisabled={isReadOnly || isBusy}
        problem={problem ?? (isChanged ? null : item.problem)}
        onChange={(value) => {
          setDraft(value);
          setProblem(null);
          if (item.kind === "bool" || item.kind === "choice") void save(value);
        }}
      />
      <Group gap="xs" mt={4}>
        <Text size="xs" c="dimmed">
          {noteOf(item, texts.settings)}
        </Text>
        {isChanged && !isReadOnly && item.kind !== "bool" && item.kind !== "choice" && (
          <Button type="submit" size="compact-xs" loading={isBusy}>
            {texts.general.save}
          </Button>
        )}
        {item.origin === "file" && !isReadOnly && (
          <Button size="compact-xs" variant="subtle" onClick={() => void send(() => sendJSON<Answer>("DELETE", path))}>
            {texts.settings.reset}
          </Button>
        )}
      </Group>
    </form>
  );
}

interface FieldProps {
  item: SettingItem;
  draft: SettingValue;
  isDisabled: boolean;
  problem: string | null;
  onChange: (value: SettingValue) => void;
}

function Field({ item, draft, isDisabled, problem, onChange }: FieldProps) {
  const texts = useTexts().settings;
  const label = (
    <>
      {item.help} <Code>{item.name}</Code>
    </>
  );
  const about = { label, error: problem, disabled: isDisabled };
  if (item.is_secret) {
    const note = item.is_set ? texts.secretSet : texts.secretUnset;
    return (
      <PasswordInput
        {...about}
        placeholder={note}
        autoComplete="off"
        value={String(draft)}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  if (item.kind === "bool") {
    return <Switch {...about} checked={draft === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
  }
  if (item.kind === "choice") {
    return (
      <Select
        {...about}
        data={item.choices}
        value={String(draft)}
        allowDeselect={false}
        onChange={(value) => value !== null && onChange(value)}
      />
    );
  }
  if (item.kind === "int" || item.kind === "float") {
    return (
      <NumberInput
        {...about}
        value={draft as number}
        min={item.minimum ?? undefined}
        max={item.maximum ?? undefined}
        clampBehavior="none"
        allowDecimal={item.kind === "float"}
        onChange={(value) => onChange(value)}
      />
    );
  }
  if (item.kind === "list") {
    return (
      <Textarea
        {...about}
        placeholder={texts.list}
        autosize
        minRows={2}
        value={(draft as string[]).join("\n")}
        onChange={(event) => onChange(event.currentTarget.value.split("\n"))}
      />
    );
  }
  return <TextInput {...about} value={String(draft)} onChange={(event) => onChange(event.currentTarget.value)} />;
}

/** Where the value comes from, and what a change needs. */
function noteOf(item: SettingItem, texts: Texts["settings"]): string {
  if (item.origin === "environment") return texts.fromEnvironment(item.variable);
  const origin = texts.origins[item.origin] ?? item.origin;
  return item.only_by_hand ? `${origin} · ${texts.needsConfirmation}` : origin;
}

/** The initial value of the field; empty for secrets. */
function initialValue(item: SettingItem): SettingValue {
  if (item.is_secret) return "";
  const value = item.value ?? item.default;
  return item.kind === "list" ? ((value ?? []) as string[]) : ((value ?? "") as SettingValue);
}
