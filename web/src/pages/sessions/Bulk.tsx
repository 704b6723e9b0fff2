import { Button, Popover, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useTexts } from "@/i18n";
import type { Action } from "./changes";
import { downloadExport } from "./exporting";
import { PurgeButton } from "./PurgeButton";
import classes from "./Sessions.module.css";
import { useChanges } from "./useChanges";

interface Props {
  ids: ReadonlySet<string>;
  state: string;
  onDone: () => void;
}

/** What can be done with the sessions that were selected. */
export function Bulk({ ids, state, onDone }: Props) {
  const texts = useTexts().sessions;
  const change = useChanges();
  const all = [...ids];
  const act = async (action: Action, tag?: string) => {
    await change(all, action, tag);
    onDone();
  };
  const actions: Action[] =
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
          onClick={() => void act(action)}
        >
          {texts[action as "pin" | "unpin" | "archive" | "unarchive" | "trash" | "restore"]}
        </Button>
      ))}
      {state === "trash" ? (
        <PurgeButton label={texts.purge} text={texts.purgeText(all.length)} ids={all} onDone={onDone} />
      ) : (
        <>
          <TagButton onTag={(tag) => void act("tag", tag)} />
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
