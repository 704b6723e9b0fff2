import { Button, Group, PasswordInput, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { sendJSON } from "@/api/client";
import { Panel } from "@/components/Panel";
import { onSubmit, useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";

/** Choose a model of a hosted provider as the default, and store its key. */
export function ProviderPanel() {
  const texts = useTexts().provider;
  const { run, isBusy } = useChange("settings", "models");
  const [provider, setProvider] = useState("anthropic");
  const [model, setModel] = useState("");
  const [key, setKey] = useState("");
  const submit = onSubmit(async () => {
    const isSaved = await run(
      () => sendJSON<{ model: string; notes: string[] }>("PUT", "/api/models/default", { provider, model, key }),
      (saved) => [texts.saved(saved.model), ...saved.notes].join(" "),
    );
    if (isSaved) setKey(""); // the key is not kept in the page
  });
  return (
    <Panel title={texts.title}>
      <form onSubmit={submit}>
        <Stack gap="sm" maw="44rem">
          <Text size="sm" c="dimmed">
            {texts.lead}
          </Text>
          <Select
            label={texts.provider}
            data={Object.entries(texts.names).map(([value, label]) => ({ value, label }))}
            value={provider}
            allowDeselect={false}
            onChange={(value) => value && setProvider(value)}
          />
          <TextInput
            label={texts.model}
            description={texts.modelHelp}
            value={model}
            onChange={(event) => setModel(event.currentTarget.value)}
          />
          <PasswordInput
            label={texts.key}
            description={texts.keyHelp}
            autoComplete="off"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
          />
          <Group>
            <Button type="submit" size="xs" loading={isBusy} disabled={!model.trim()}>
              {texts.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
