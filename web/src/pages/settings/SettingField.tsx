import { Button, Group, NumberInput, PasswordInput, Select, Switch, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { sendJSON } from "@/api/client";
import type { SettingItem } from "@/api/types";
import { useMutationRunner } from "@/components/useMutationRunner";
import { type Texts, useTexts } from "@/i18n";

type SettingValue = string | number | boolean | string[];

/** A form field for one setting. */
export function SettingField({ item }: { item: SettingItem }) {
  const texts = useTexts();
  const { run, isBusy } = useMutationRunner("settings");
  const [draft, setDraft] = useState<SettingValue>(initialValue(item));
  useEffect(() => setDraft(initialValue(item)), [item]);
  const path = `/api/settings/${encodeURIComponent(item.name)}`;
  const isReadOnly = item.origin === "environment" || item.only_by_hand;
  const isChanged = JSON.stringify(draft) !== JSON.stringify(initialValue(item));

  const save = async (value: SettingValue) => {
    const isSaved = await run(
      () => sendJSON("PUT", path, { value }),
      () => texts.settings.saved(item.name),
    );
    if (isSaved && item.is_secret) setDraft(""); // the secret is not kept in the page
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save(draft);
  };

  return (
    <form onSubmit={submit}>
      <Field
        item={item}
        draft={draft}
        isDisabled={isReadOnly || isBusy}
        onChange={(value) => {
          setDraft(value);
          if (item.kind === "bool" || item.kind === "choice") void save(value);
        }}
      />
      <Group gap="xs" mt={4}>
        <Text size="xs" c="dimmed">
          {readOnlyReason(item, texts.settings) ?? texts.settings.origins[item.origin]}
        </Text>
        {isChanged && !isReadOnly && item.kind !== "bool" && item.kind !== "choice" && (
          <Button type="submit" size="compact-xs" loading={isBusy}>
            {texts.general.save}
          </Button>
        )}
        {item.origin === "file" && !isReadOnly && (
          <Button
            size="compact-xs"
            variant="subtle"
            onClick={() =>
              void run(
                () => sendJSON("DELETE", path),
                () => texts.settings.saved(item.name),
              )
            }
          >
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
  onChange: (value: SettingValue) => void;
}

function Field({ item, draft, isDisabled, onChange }: FieldProps) {
  const texts = useTexts().settings;
  const about = { label: item.name, description: item.help, disabled: isDisabled };
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

/** Why a setting is read-only; null if it is not. */
function readOnlyReason(item: SettingItem, texts: Texts["settings"]): string | null {
  if (item.origin === "environment") return texts.fromEnvironment(item.variable);
  return item.only_by_hand ? texts.onlyByHand(item.name) : null;
}

/** The initial value of the field; empty for secrets. */
function initialValue(item: SettingItem): SettingValue {
  if (item.is_secret) return "";
  const value = item.value ?? item.default;
  return item.kind === "list" ? ((value ?? []) as string[]) : ((value ?? "") as SettingValue);
}
