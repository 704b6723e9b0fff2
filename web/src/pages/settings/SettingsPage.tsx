import { Button, Group, Stack, Switch, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { useState } from "react";
import { fetchJSON } from "@/api/client";
import type { SettingList } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { useTexts } from "@/i18n";
import { type GroupName, groupSettings } from "./groups";
import { ProviderPanel } from "./ProviderPanel";
import { SettingField } from "./SettingField";

/** All settings, grouped by purpose; the server has the table. */
export default function SettingsPage() {
  const texts = useTexts().settings;
  const [query, setQuery] = useState("");
  const [withAdvanced, setAdvanced] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ["settings"],
    queryFn: () => fetchJSON<SettingList>("/api/settings"),
  });
  const groups = groupSettings(data?.items ?? [], query, withAdvanced);
  const isSearch = query.trim() !== "";
  return (
    <Page title={texts.title} lead={data && texts.lead(data.path)}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      <Group gap="md">
        <TextInput
          type="search"
          aria-label={texts.search}
          placeholder={texts.search}
          leftSection={<Search size={16} />}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
          flex="1 1 16rem"
          maw={420}
        />
        <Switch
          label={texts.advanced}
          checked={withAdvanced || isSearch}
          disabled={isSearch}
          onChange={(event) => setAdvanced(event.currentTarget.checked)}
        />
      </Group>
      {!isSearch && <GroupLinks names={groups.map(([name]) => name)} />}
      {data && !isSearch && <ProviderPanel />}
      {data && groups.length === 0 && <EmptyState title={texts.nothingTitle} text={texts.nothing} />}
      {groups.map(([name, items]) => (
        <div key={name} id={`settings-${name}`}>
          <Panel title={texts.groups[name].title} help={texts.groups[name].help}>
            <Stack gap="lg" maw="44rem">
              {items.map((item) => (
                <SettingField key={item.name} item={item} />
              ))}
            </Stack>
          </Panel>
        </div>
      ))}
    </Page>
  );
}

/** Buttons that jump to a group. */
function GroupLinks({ names }: { names: GroupName[] }) {
  const texts = useTexts().settings;
  const jump = (name: GroupName) => document.getElementById(`settings-${name}`)?.scrollIntoView();
  return (
    <Group component="nav" aria-label={texts.groupsLabel} gap="xs">
      {names.map((name) => (
        <Button key={name} size="compact-sm" variant="default" onClick={() => jump(name)}>
          {texts.groups[name].title}
        </Button>
      ))}
    </Group>
  );
}
