import { Button, Popover, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { fetchChecked } from "@/api/client";
import { downloadBlob } from "@/components/download";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { PurgeButton } from "./PurgeButton";
import classes from "./Sessions.module.css";
import type { BulkAction } from "./sessionChanges";
import { useBulkAction } from "./useBulkAction";

interface Props {
  ids: ReadonlySet<string>;
  state: string;
  onDone: () => void;
}

/** Actions on the selected sessions. */
export function BulkActionBar({ ids, state, onDone }: Props) {
  const texts = useTexts().sessions;
  const change = useBulkAction();
  const all = [...ids];
  const apply = async (action: BulkAction, tag?: string) => {
    await change(all, action, tag);
    onDone();
  };
  const actions: BulkAction[] =
    state === "trash" ? ["restore"] : ["pin", "unpin", state === "archived" ? "unarchive" : "archive", "trash"];
  return (
    <section className={classes.bulk} aria-label={texts.selected(ids.size)}>
      <Text size="sm" fw={600} role="status">
        {texts.selected(ids.size)}
      </Text>
      {actions.map((action) => (
        <Button
          key={action}
          size="xs"
          variant={action === "trash" ? "light" : "default"}
          color={action === "trash" ? "red" : undefined}
          onClick={() => void apply(action)}
        >
          {texts[action as "pin" | "unpin" | "archive" | "unarchive" | "trash" | "restore"]}
        </Button>
      ))}
      {state === "trash" ? (
        <PurgeButton label={texts.purge} text={texts.purgeText(all.length)} ids={all} onDone={onDone} />
      ) : (
        <>
          <TagButton onTag={(tag) => void apply("tag", tag)} />
          <Button size="xs" variant="default" onClick={() => void downloadExport(all)}>
            {texts.export}
          </Button>
        </>
      )}
      <Button size="xs" variant="subtle" onClick={onDone}>
        {texts.selectNone}
      </Button>
    </section>
  );
}

function TagButton({ onTag }: { onTag: (tag: string) => void }) {
  const texts = useTexts().sessions;
  const [isOpen, setOpen] = useState(false);
  const [tag, setTag] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (tag.trim()) onTag(tag.trim());
    setOpen(false);
    setTag("");
  };
  return (
    <Popover opened={isOpen} onChange={setOpen} trapFocus>
      <Popover.Target>
        <Button size="xs" variant="default" onClick={() => setOpen(!isOpen)}>
          {texts.addTag}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form onSubmit={submit}>
          <TextInput
            label={texts.newTag}
            description={texts.tagHelp}
            maxLength={40}
            value={tag}
            onChange={(event) => setTag(event.currentTarget.value)}
            data-autofocus
          />
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

/** Download an export of these sessions, in the format of `hermes sessions export`. */
async function downloadExport(ids: string[]): Promise<void> {
  try {
    const response = await fetchChecked("/api/export", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ids, format: "jsonl" }),
    });
    downloadBlob(await response.blob(), fileNameFrom(response) ?? "hermes-export.jsonl");
  } catch (error) {
    showError(error);
  }
}

function fileNameFrom(response: Response): string | undefined {
  return /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
}
