import { Button, Group, Modal, SegmentedControl, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { sendJSON } from "@/api/client";
import type { PendingChange } from "@/api/types";
import { FormProblem } from "@/components/FormProblem";
import { onSubmit, useForm } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { parseVariables } from "./variables";

const EMPTY = { name: "", kind: "command", target: "", variables: "" };
const FIELDS = ["name", "command", "url", "variables"] as const;

/** The form for a new server; it takes effect after a confirmation in a terminal. */
export function ServerForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { mcp, general } = useTexts();
  const texts = mcp.form;
  const [draft, setDraft] = useState(EMPTY);
  const { form, isBusy, problems, setProblems, refuse, run } = useForm(FIELDS, "pending-changes");
  const isUrl = draft.kind === "url";
  const targetName = isUrl ? "url" : "command";
  const field = (name: "name" | "target" | "variables") => {
    const sentName = name === "target" ? targetName : name;
    return {
      name: sentName,
      value: draft[name],
      error: problems[sentName],
      onChange: (event: { currentTarget: { value: string } }) =>
        setDraft({ ...draft, [name]: event.currentTarget.value }),
    };
  };
  const submit = onSubmit(async () => {
    const variables = parseVariables(draft.variables, isUrl ? ":" : "=");
    if (variables === null) {
      refuse({ variables: isUrl ? texts.badHeaders : texts.badVariables });
      return;
    }
    const body = { name: draft.name, [targetName]: draft.target, variables };
    const send = () => sendJSON<PendingChange>("POST", "/api/mcp-servers", body);
    if (!(await run(send, (change) => texts.requested(change.name)))) return;
    setDraft(EMPTY);
    onClose();
  });
  return (
    <Modal opened={isOpen} onClose={onClose} title={texts.title} closeButtonProps={{ "aria-label": general.close }}>
      <form ref={form} onSubmit={submit}>
        <Stack gap="sm">
          <TextInput label={texts.name} description={texts.nameHelp} maxLength={64} data-autofocus {...field("name")} />
          <SegmentedControl
            aria-label={texts.kind}
            data={[
              { value: "command", label: texts.command },
              { value: "url", label: texts.url },
            ]}
            value={draft.kind}
            onChange={(kind) => {
              setDraft({ ...draft, kind });
              setProblems({});
            }}
          />
          <TextInput
            label={isUrl ? texts.url : texts.command}
            description={isUrl ? texts.urlHelp : texts.commandHelp}
            {...field("target")}
          />
          <Textarea
            label={isUrl ? texts.headers : texts.variables}
            description={isUrl ? texts.headersHelp : texts.variablesHelp}
            autosize
            minRows={2}
            {...field("variables")}
          />
          <FormProblem text={problems[""]} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {general.cancel}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!draft.name.trim() || !draft.target.trim()}>
              {texts.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
