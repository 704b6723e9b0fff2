import { Button, Group, Modal, SegmentedControl, Stack, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { sendJSON } from "@/api/client";
import type { PendingChange } from "@/api/types";
import { errorMessage } from "@/components/notices";
import { useTexts } from "@/i18n";
import { parseVariables } from "./variables";

const EMPTY = { name: "", kind: "command", target: "", variables: "" };

/** The form for a new server; it takes effect after a confirmation in a terminal. */
export function ServerForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { mcp, general } = useTexts();
  const texts = mcp.form;
  const client = useQueryClient();
  const [draft, setDraft] = useState(EMPTY);
  const [problem, setProblem] = useState<string | null>(null);
  const isUrl = draft.kind === "url";
  const field = (name: keyof typeof EMPTY) => ({
    value: draft[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const variables = parseVariables(draft.variables, isUrl ? ":" : "=");
    if (variables === null) {
      setProblem(isUrl ? texts.badHeaders : texts.badVariables);
      return;
    }
    const target = isUrl ? { url: draft.target } : { command: draft.target };
    try {
      const body = { name: draft.name, ...target, variables };
      const change = await sendJSON<PendingChange>("POST", "/api/mcp-servers", body);
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
          <TextInput label={texts.name} description={texts.nameHelp} maxLength={64} data-autofocus {...field("name")} />
          <SegmentedControl
            aria-label={texts.kind}
            data={[
              { value: "command", label: texts.command },
              { value: "url", label: texts.url },
            ]}
            value={draft.kind}
            onChange={(kind) => setDraft({ ...draft, kind })}
          />
          <TextInput
            label={isUrl ? texts.url : texts.command}
            description={isUrl ? texts.urlHelp : texts.commandHelp}
            error={problem}
            {...field("target")}
          />
          <Textarea
            label={isUrl ? texts.headers : texts.variables}
            description={isUrl ? texts.headersHelp : texts.variablesHelp}
            autosize
            minRows={2}
            {...field("variables")}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {general.cancel}
            </Button>
            <Button type="submit" disabled={!draft.name.trim() || !draft.target.trim()}>
              {texts.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
