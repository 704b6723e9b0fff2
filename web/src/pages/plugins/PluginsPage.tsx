import { Badge, Group, Paper, Stack, Switch, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { fetchJSON, sendJSON } from "@/api/client";
import { usePluginTabs } from "@/api/queries";
import type { PluginItem, PluginTab } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { useChange } from "@/components/useChange";
import { useTexts } from "@/i18n";

/** Installed plugins, with switches to enable them. */
export default function PluginsPage() {
  const texts = useTexts().plugins;
  const { data, error, refetch } = useQuery({
    queryKey: ["plugins"],
    queryFn: () => fetchJSON<{ items: PluginItem[] }>("/api/plugins"),
  });
  const known = new Set(data?.items.map((plugin) => plugin.name));
  const pages = (usePluginTabs().data ?? []).filter((tab) => data && !known.has(tab.name));
  return (
    <Page title={texts.title} lead={texts.lead}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data?.items.length === 0 && pages.length === 0 && <EmptyState title={texts.emptyTitle} text={texts.empty} />}
      <Stack>
        {data?.items.map((plugin) => (
          <Plugin key={plugin.key} plugin={plugin} />
        ))}
        {pages.map((tab) => (
          <PageOnly key={tab.name} tab={tab} />
        ))}
      </Stack>
    </Page>
  );
}

/** A plugin that consists of a dashboard page only. */
function PageOnly({ tab }: { tab: PluginTab }) {
  return (
    <Card
      facts={{ ...tab, has_dashboard: true }}
      name={tab.label}
      title={<Link to={tab.tab.path as "/"}>{tab.label}</Link>}
    />
  );
}

function Plugin({ plugin }: { plugin: PluginItem }) {
  const texts = useTexts().plugins;
  const { run, isBusy } = useChange("plugins", "tabs", "hooks", "pending-changes");
  const key = plugin.key.split("/").map(encodeURIComponent).join("/");
  const change = (isOn: boolean) =>
    void run(
      () => sendJSON("POST", `/api/plugins/${key}/${isOn ? "enable" : "disable"}`),
      isOn ? texts.requested(plugin.name) : texts.restart,
    );
  return (
    <Card facts={plugin} name={plugin.name} title={plugin.name} hooks={plugin.hooks}>
      <Switch
        aria-label={texts.enable(plugin.name)}
        checked={plugin.is_enabled}
        disabled={isBusy}
        onChange={(event) => change(event.currentTarget.checked)}
      />
    </Card>
  );
}

interface CardProps {
  facts: Pick<PluginItem, "version" | "source" | "description" | "error" | "has_dashboard">;
  name: string;
  title: ReactNode;
  hooks?: string[];
  children?: ReactNode;
}

/** Metadata of a plugin. */
function Card({ facts, name, title, hooks = [], children }: CardProps) {
  const texts = useTexts().plugins;
  const marks = [facts.source === "bundled" && texts.bundled, facts.has_dashboard && texts.dashboard].filter(Boolean);
  return (
    <Paper withBorder p="md" bg="var(--panel)" component="section" aria-label={name}>
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <div>
          <Group gap="xs">
            <Title order={2} size="h5">
              {title}
            </Title>
            <Text size="sm" c="dimmed">
              {facts.version}
            </Text>
            {marks.map((mark) => (
              <Badge key={String(mark)} size="sm" variant="light" tt="none">
                {mark}
              </Badge>
            ))}
          </Group>
          <Text size="sm">{facts.description}</Text>
          {hooks.length > 0 && (
            <Text size="xs" c="dimmed">
              {texts.hooksLabel} {hooks.join(", ")}
            </Text>
          )}
          {facts.error && (
            <Text size="sm" c="var(--bad)">
              {texts.error} {facts.error}
            </Text>
          )}
        </div>
        {children}
      </Group>
    </Paper>
  );
}
