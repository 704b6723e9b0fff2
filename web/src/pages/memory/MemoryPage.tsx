import { SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON } from "@/api/client";
import type { MemoryFile } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { FactsPanel } from "./FactsPanel";
import { MemoryPanel } from "./MemoryPanel";
import { PeopleMemory } from "./PeopleMemory";
import { SkillsPanel } from "./SkillsPanel";

/** What the agent remembers, and its skills. */
export default function MemoryPage() {
  const texts = useTexts().memory;
  const { data, error, refetch } = useQuery({
    queryKey: ["memory"],
    queryFn: () => fetchJSON<{ items: MemoryFile[] }>("/api/memory"),
  });
  return (
    <Page title={texts.title} lead={texts.lead}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data && (
        <SimpleGrid cols={{ base: 1, lg: 2 }}>
          {data.items.map((file) => (
            <MemoryPanel key={file.target} file={file} />
          ))}
        </SimpleGrid>
      )}
      <FactsPanel />
      <PeopleMemory />
      <SkillsPanel />
    </Page>
  );
}
