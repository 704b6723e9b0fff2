import { Accordion, Alert, Badge, Button, Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { PlugZap } from "lucide-react";
import { useState } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import type { PlatformForm, PlatformTest } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { errorMessage } from "@/components/notices";
import { Panel } from "@/components/Panel";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";
import { SettingField } from "@/pages/settings/SettingField";

/** A form for each platform: credentials, options, a connection test. */
export function PlatformForms() {
  const texts = useTexts().gateway.forms;
  const { data, error, refetch } = useQuery({
    queryKey: ["gateway", "platforms"],
    queryFn: () => fetchJSON<{ items: PlatformForm[] }>("/api/gateway/platforms"),
  });
  return (
    <Panel title={texts.title} help={texts.help}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (
        <Accordion order={3} variant="contained">
          {data.items.map((form) => (
            <Accordion.Item key={form.name} value={form.name}>
              <Accordion.Control>
                <Group justify="space-between" wrap="nowrap" pr="sm">
                  <Text fw={600}>{form.title}</Text>
                  <StateBadge form={form} />
                </Group>
              </Accordion.Control>
              <Accordion.Panel>
                <FormContent form={form} />
              </Accordion.Panel>
            </Accordion.Item>
          ))}
        </Accordion>
      )}
    </Panel>
  );
}

function StateBadge({ form }: { form: PlatformForm }) {
  const texts = useTexts().gateway.forms;
  const [color, text] = !form.is_enabled
    ? ["gray", texts.off]
    : form.missing
      ? ["orange", texts.incomplete]
      : ["green", texts.on];
  return (
    <Badge variant="light" tt="none" miw="max-content" color={color}>
      {text}
    </Badge>
  );
}

function FormContent({ form }: { form: PlatformForm }) {
  const texts = useTexts().gateway.forms;
  return (
    <Stack gap="lg" maw="44rem" role="group" aria-label={form.title}>
      <Text size="sm">{form.help}</Text>
      {form.library_command && (
        <Text size="sm">
          {texts.library} <Code>{form.library_command}</Code>
        </Text>
      )}
      {form.is_enabled && form.missing && !form.library_command && <Text size="sm">{form.missing}</Text>}
      {form.fields.map((item) => (
        <SettingField key={item.name} item={item} />
      ))}
      {form.can_test && <ConnectionTest form={form} />}
      <Text size="xs" c="dimmed">
        {texts.restart}
      </Text>
    </Stack>
  );
}

function ConnectionTest({ form }: { form: PlatformForm }) {
  const texts = useTexts().gateway.forms;
  const { run, isBusy } = useChange();
  const [result, setResult] = useState<PlatformTest | null>(null);
  const test = () =>
    run(
      async () => setResult(await sendJSON<PlatformTest>("POST", `/api/gateway/platforms/${form.name}/test`)),
      undefined,
      (error) => setResult({ is_ok: false, detail: errorMessage(error) }),
    );
  return (
    <>
      <Group>
        <Button
          size="xs"
          variant="default"
          leftSection={<PlugZap size={14} />}
          loading={isBusy}
          aria-label={texts.testLabel(form.title)}
          onClick={() => void test()}
        >
          {texts.test}
        </Button>
      </Group>
      {result && (
        <Alert color={result.is_ok ? "green" : "red"} variant="light" role="status">
          {result.detail}
        </Alert>
      )}
    </>
  );
}
