import { Alert, Badge, Button, Group, PasswordInput, Select, Stack, Text, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import { errorMessage } from "@/components/notices";
import { onSubmit, useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";

interface HostedProvider {
  name: string;
  title: string;
  model: string;
  variable: string;
  has_key: boolean;
  is_from_environment: boolean;
}

interface ModelSetup {
  is_ready: boolean;
  problem: string;
  providers: HostedProvider[];
  servers: { name: string; base_url: string; models: string[] }[];
}

interface TestResult {
  status: "ok" | "warning" | "failed";
  detail: string;
  advice: string;
}

/** What is missing before a model can answer; loaded once, and again after a change. */
export function useModelSetup() {
  return useQuery({
    queryKey: ["models", "setup"],
    queryFn: () => fetchJSON<ModelSetup>("/api/models/setup"),
    staleTime: 60_000,
  });
}

/** The choice of a provider; shown until a model answers. */
export function SetupCard({ setup }: { setup: ModelSetup }) {
  const texts = useTexts().chat.setup;
  const cache = useQueryClient();
  const [name, setName] = useState(() => setup.providers.find((one) => one.has_key)?.name ?? "anthropic");
  const provider = setup.providers.find((one) => one.name === name);
  const [model, setModel] = useState("");
  const [key, setKey] = useState("");
  const { run, isBusy } = useChange();
  const [result, setResult] = useState<TestResult | null>(null);

  /** Run a step, then test the model; the card goes away when the page sees that one is ready. */
  const test = (before: () => Promise<unknown> = () => Promise.resolve()) =>
    run(
      async () => {
        await before();
        const tested = await sendJSON<TestResult>("POST", "/api/models/test");
        setResult(tested);
        if (tested.status === "ok") await cache.invalidateQueries({ queryKey: ["models"] });
      },
      undefined,
      (error) => setResult({ status: "failed", detail: errorMessage(error), advice: "" }),
    );
  const submit = onSubmit(() => {
    const body = { provider: name, model: model.trim() || provider?.model, key: key.trim() };
    setKey(""); // the key is not kept in the page
    void test(() => sendJSON("PUT", "/api/models/default", body));
  });

  return (
    <section className={classes.setup} aria-label={texts.title}>
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Text component="h2" fw={650} size="lg" m={0}>
            {texts.title}
          </Text>
          <Text size="sm">
            {setup.problem} {texts.lead}
          </Text>
          <Select
            label={texts.provider}
            data={setup.providers.map((one) => ({ value: one.name, label: one.title }))}
            value={name}
            allowDeselect={false}
            searchable
            onChange={(value) => {
              if (value) setName(value);
              setModel("");
            }}
          />
          {provider?.has_key && (
            <Badge variant="light" color="green" tt="none">
              {provider.is_from_environment ? texts.keyFromEnvironment(provider.variable) : texts.keyStored}
            </Badge>
          )}
          <TextInput
            label={texts.model}
            placeholder={provider?.model}
            value={model}
            onChange={(event) => setModel(event.currentTarget.value)}
          />
          <PasswordInput
            label={texts.key}
            description={texts.keyHelp}
            placeholder={provider?.variable}
            autoComplete="off"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
          />
          {result && (
            <Alert color={result.status === "ok" ? "green" : "red"} variant="light" role="status">
              {result.detail} {result.advice}
            </Alert>
          )}
          <Group gap="xs">
            <Button type="submit" size="xs" loading={isBusy} disabled={!key.trim() && !provider?.has_key}>
              {texts.save}
            </Button>
            <Button size="xs" variant="default" loading={isBusy} onClick={() => void test()}>
              {texts.test}
            </Button>
          </Group>
          <ServerList servers={setup.servers} />
        </Stack>
      </form>
    </section>
  );
}

function ServerList({ servers }: { servers: ModelSetup["servers"] }) {
  const texts = useTexts().chat.setup;
  return (
    <div>
      <Text size="sm" fw={600}>
        {texts.local}
      </Text>
      <Text size="sm">{texts.localHelp}</Text>
      <ul className={classes.servers}>
        {servers.map((server) => (
          <li key={server.base_url}>
            {server.name} <code>{server.base_url}</code>:{" "}
            {server.models.length > 0 ? texts.serverModels(server.models.length) : texts.notRunning}
          </li>
        ))}
      </ul>
      <Text size="sm">
        {texts.terminal} <code>{texts.command}</code>
      </Text>
    </div>
  );
}
