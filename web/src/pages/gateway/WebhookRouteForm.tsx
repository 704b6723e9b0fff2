import { Button, Checkbox, Group, NumberInput, PasswordInput, Select, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { sendJSON } from "@/api/client";
import type { PendingChange, WebhookRoute } from "@/api/types";
import { FormDialog } from "@/components/FormDialog";
import { FormProblem } from "@/components/FormProblem";
import { onSubmit, useForm } from "@/components/useChange";
import { useTexts } from "@/i18n";

const EMPTY = {
  name: "",
  prompt: "",
  secret_env: "WEBHOOK_SECRET",
  secret: "",
  deliver_url: "",
  chat: "per-delivery",
  needs_timestamp: false,
  per_minute: 30 as number | string,
};
const FIELDS = Object.keys(EMPTY);
type Draft = typeof EMPTY;
type TextName = "name" | "prompt" | "secret_env" | "secret" | "deliver_url";

/** A route that is added or changed; what grants something takes effect after a confirmation in a terminal. */
export function WebhookRouteForm({ route, onClose }: { route: WebhookRoute | null; onClose: () => void }) {
  const { gateway, general } = useTexts();
  const texts = gateway.routes;
  const before: Draft = route ? { ...EMPTY, ...route } : EMPTY;
  const [draft, setDraft] = useState(before);
  const { form, isBusy, problems, run } = useForm(FIELDS, "gateway", "pending-changes");
  const text = (name: TextName) => ({
    name,
    value: draft[name],
    error: problems[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  const submit = onSubmit(async () => {
    // Only what was changed: a URL is shown without its password.
    const changed = Object.fromEntries(FIELDS.filter(isChanged).map((name) => [name, draft[name as keyof Draft]]));
    const path = "/api/gateway/webhook-routes";
    const send = () =>
      route
        ? sendJSON<WebhookRoute | PendingChange>("PUT", `${path}/${encodeURIComponent(route.name)}`, changed)
        : sendJSON<WebhookRoute | PendingChange>("POST", path, changed);
    const isSent = await run(send, (answer) =>
      "code" in answer ? texts.requested(answer.name) : texts.saved(answer.name),
    );
    if (isSent) onClose();
  });
  function isChanged(name: string): boolean {
    return draft[name as keyof Draft] !== before[name as keyof Draft];
  }
  return (
    <FormDialog onClose={onClose} title={route ? texts.editTitle(route.name) : texts.add}>
      <form ref={form} onSubmit={submit}>
        <Stack gap="sm">
          {!route && (
            <TextInput
              label={texts.name}
              description={texts.nameHelp}
              maxLength={64}
              data-autofocus
              {...text("name")}
            />
          )}
          <Textarea
            label={texts.prompt}
            description={texts.promptHelp}
            autosize
            minRows={3}
            maxRows={12}
            {...text("prompt")}
          />
          <TextInput label={texts.secretEnv} description={texts.secretEnvHelp} {...text("secret_env")} />
          <PasswordInput
            label={texts.secret}
            description={texts.secretHelp}
            autoComplete="new-password"
            {...text("secret")}
          />
          <TextInput label={texts.deliverUrl} description={texts.deliverUrlHelp} {...text("deliver_url")} />
          <Select
            label={texts.chat}
            data={Object.entries(texts.chats).map(([value, label]) => ({ value, label }))}
            value={draft.chat}
            allowDeselect={false}
            onChange={(chat) => chat && setDraft({ ...draft, chat })}
          />
          <Checkbox
            label={texts.needsTimestamp}
            checked={draft.needs_timestamp}
            onChange={(event) => setDraft({ ...draft, needs_timestamp: event.currentTarget.checked })}
          />
          <NumberInput
            name="per_minute"
            label={texts.perMinute}
            value={draft.per_minute}
            error={problems.per_minute}
            min={1}
            clampBehavior="none"
            allowDecimal={false}
            hideControls
            onChange={(value) => setDraft({ ...draft, per_minute: value })}
          />
          <FormProblem text={problems[""]} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {general.cancel}
            </Button>
            <Button
              type="submit"
              loading={isBusy}
              disabled={
                !draft.name.trim() || !draft.prompt.trim() || draft.per_minute === "" || !FIELDS.some(isChanged)
              }
            >
              {route ? general.save : texts.request}
            </Button>
          </Group>
        </Stack>
      </form>
    </FormDialog>
  );
}
