import { Badge, Group, Paper, Stack, Switch, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { fetchJSON, sendJSON } from "@/api/client";
import { useTabs } from "@/api/queries";
import type { PluginItem, PluginTab } from "@/api/types";
import { Empty } from "@/components/Empty";
import { ErrorPane } from "@/components/ErrorPane";
import { Page } from "@/components/Page";
import { useDo } from "@/components/useDo";
import { Waiting } from "@/components/Waiting";
import { useTexts } from "@/i18n";

/** What extends Hermes, to be switched on and off. */
export default function PluginsPage() {
  const texts = useTexts().plugins;
  const { data, error, refetch } = useQuery({
    queryKey: ["plugins"],
    queryFn: () => fetchJSON<{ items: PluginItem[] }>("/api/plugins"),
  });
  const known = new Set(data?.items.map((one) => one.name));
  const pages = (useTabs().data ?? []).filter((one) => data && !known.has(one.name));
  return (
    <Page title={texts.title} lead={texts.lead}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Waiting />}
      {data?.items.length === 0 && pages.length === 0 && <Empty title={texts.emptyTitle} text={texts.empty} />}
      <Stack>
        {data?.items.map((one) => (
          <Plugin key={one.key} plugin={one} />
        ))}
        {pages.map((one) => (
          <PageOnly key={one.name} tab={one} />
        ))}
      </Stack>
    </Page>
  );
}

/** A plugin that is nothing but a page. */
function PageOnly({ tab }: { tab: PluginTab }) {
  const texts = useTexts().plugins;
  return (
    <Paper withBorder p="md" bg="var(--panel)" component="section" aria-label={tab.label}>
      <Group gap="xs">
        <Title order={2} size="h5">
          <Link to={tab.tab.path as "/"}>{tab.label}</Link>
        </Title>
        <Text size="sm" c="dimmed">
          {tab.version}
        </Text>
        {tab.source === "bundled" && (
          <Badge size="sm" variant="light" tt="none">
            {texts.bundled}
          </Badge>
        )}
      </Group>
      <Text size="sm">{tab.description}</Text>
      {tab.error && (
        <Text size="sm" c="var(--bad)">
          {texts.error} {tab.error}
        </Text>
      )}
    </Paper>
  );
}

function Plugin({ plugin }: { plugin: PluginItem }) {
  const texts = useTexts().plugins;
  const { run, isBusy } = useDo("plugins", "tabs", "hooks");
  const key = plugin.key.split("/").map(encodeURIComponent).join("/");
  const change = (isOn: boolean) =>
    void run(
      () => sendJSON("POST", `/api/plugins/${key}/${isOn ? "enable" : "disable"}`),
      () => texts.restart,
    );
  return (
    <Paper withBorder p="md" bg="var(--panel)" component="section" aria-label={plugin.name}>
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <div>
          <Group gap="xs">
            <Title order={2} size="h5">
              {plugin.name}
            </Title>
            <Text size="sm" c="dimmed">
              {plugin.version}
            </Text>
            {plugin.source === "bundled" && (
              <Badge size="sm" variant="light" tt="none">
                {texts.bundled}
              </Badge>
            )}
            {plugin.has_dashboard && (
              <Badge size="sm" variant="light" tt="none">
                {texts.dashboard}
              </Badge>
            )}
          </Group>
          <Text size="sm">{plugin.description}</Text>
          {plugin.hooks.length > 0 && (
            <Text size="xs" c="dimmed">
              {texts.hooksLabel} {plugin.hooks.join(", ")}
            </Text>
          )}
          {plugin.error && (
            <Text size="sm" c="var(--bad)">
              {texts.error} {plugin.error}
            </Text>
          )}
        </div>
        <Switch
          aria-label={texts.switchOn(plugin.name)}
          checked={plugin.is_enabled}
          disabled={isBusy}
          onChange={(event) => change(event.currentTarget.checked)}
        />
      </Group>
    </Paper>
  );
}
