import { Button, Group, Modal, Stack, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { sendJSON } from "@/api/client";
import type { PendingChange } from "@/api/types";
import { errorMessage } from "@/components/notices";
import { useTexts } from "@/i18n";

const EMPTY = { schedule: "", prompt: "", name: "", time_zone: "" };

/** The form for a new job; it takes effect after a confirmation in a terminal. */
export function JobForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { schedules, general } = useTexts();
  const texts = schedules.form;
  const client = useQueryClient();
  const [draft, setDraft] = useState(EMPTY);
  const [problem, setProblem] = useState<string | null>(null);
  const field = (name: keyof typeof EMPTY) => ({
    value: draft[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      const change = await sendJSON<PendingChange>("POST", "/api/schedules", draft);
      notifications.show({ message: texts.requested(change.name) });
      await client.invalidateQueries({ queryKey: ["pending-changes"] });
      setDraft(EMPTY);
      setProblem(null);
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <Modal opened={isOpen} onClose={onClose} title={texts.title} closeButtonProps={{ "aria-label": general.close }}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack gap="sm">
          <TextInput
            label={texts.schedule}
            description={texts.scheduleHelp}
            error={problem}
            data-autofocus
            {...field("schedule")}
          />
          <Textarea label={texts.prompt} description={texts.promptHelp} autosize minRows={3} {...field("prompt")} />
          <TextInput label={texts.name} maxLength={40} {...field("name")} />
          <TextInput label={texts.zone} description={texts.zoneHelp} {...field("time_zone")} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {general.cancel}
            </Button>
            <Button type="submit" disabled={!draft.schedule.trim() || !draft.prompt.trim()}>
              {texts.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
