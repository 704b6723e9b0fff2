import { Button, Group, Modal, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { sendJSON } from "@/api/client";
import type { PendingChange } from "@/api/types";
import { FormProblem } from "@/components/FormProblem";
import { onSubmit, useForm } from "@/components/useChange";
import { useTexts } from "@/i18n";

const EMPTY = { schedule: "", prompt: "", name: "", time_zone: "" };
const FIELDS = Object.keys(EMPTY);

/** The form for a new job; it takes effect after a confirmation in a terminal. */
export function JobForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { schedules, general } = useTexts();
  const texts = schedules.form;
  const [draft, setDraft] = useState(EMPTY);
  const { form, isBusy, problems, run } = useForm(FIELDS, "pending-changes");
  const field = (name: keyof typeof EMPTY) => ({
    name,
    value: draft[name],
    error: problems[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  const submit = onSubmit(async () => {
    const send = () => sendJSON<PendingChange>("POST", "/api/schedules", draft);
    if (!(await run(send, (change) => texts.requested(change.name)))) return;
    setDraft(EMPTY);
    onClose();
  });
  return (
    <Modal opened={isOpen} onClose={onClose} title={texts.title} closeButtonProps={{ "aria-label": general.close }}>
      <form ref={form} onSubmit={submit}>
        <Stack gap="sm">
          <TextInput label={texts.schedule} description={texts.scheduleHelp} data-autofocus {...field("schedule")} />
          <Textarea label={texts.prompt} description={texts.promptHelp} autosize minRows={3} {...field("prompt")} />
          <TextInput label={texts.name} maxLength={40} {...field("name")} />
          <TextInput label={texts.zone} description={texts.zoneHelp} {...field("time_zone")} />
          <FormProblem text={problems[""]} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {general.cancel}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!draft.schedule.trim() || !draft.prompt.trim()}>
              {texts.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
