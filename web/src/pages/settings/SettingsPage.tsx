import { Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { useState } from "react";
import { fetchJSON } from "@/api/client";
import type { SettingItem, SettingList } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { Panel } from "@/components/Panel";
import { useTexts } from "@/i18n";
import { ProviderPanel } from "./ProviderPanel";
import { SettingField } from "./SettingField";

/** All settings, generated from the settings table of the server. */
export default function SettingsPage() {
  const texts = useTexts().settings;
  const [query, setQuery] = useState("");
  const { data, error, refetch } = useQuery({
    queryKey: ["settings"],
    queryFn: () => fetchJSON<SettingList>("/api/settings"),
  });
  const sections = groupBySection(data?.items ?? [], query);
  return (
    <Page title={texts.title} lead={data && texts.lead(data.path)}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      <TextInput
        type="search"
        aria-label={texts.search}
        placeholder={texts.search}
        leftSection={<Search size={16} />}
        value={query}
        onChange={(event) => setQuery(event.currentTarget.value)}
        maw={420}
      />
      {data && query.trim() === "" && <ProviderPanel />}
      {data && sections.length === 0 && <EmptyState title={texts.nothingTitle} text={texts.nothing} />}
      {sections.map(([section, items]) => (
        <Panel key={section} title={section}>
          <Stack gap="lg" maw="44rem">
            {items.map((item) => (
              <SettingField key={item.name} item={item} />
            ))}
          </Stack>
        </Panel>
      ))}
    </Page>
  );
}

/** Group the settings that match the query by section. */
function groupBySection(items: SettingItem[], query: string): [string, SettingItem[]][] {
  const wanted = query.trim().toLowerCase();
  const found = new Map<string, SettingItem[]>();
  for (const item of items) {
    if (wanted && !`${item.name} ${item.help}`.toLowerCase().includes(wanted)) continue;
    found.set(item.section, [...(found.get(item.section) ?? []), item]);
  }
  return [...found];
}
