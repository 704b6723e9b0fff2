import { SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchJSON } from "@/api/client";
import type { PersonMemory } from "@/api/types";
import { ErrorPane } from "@/components/ErrorPane";
import { Panel } from "@/components/Panel";
import { useTexts } from "@/i18n";
import { MemoryPanel } from "./MemoryPanel";

/** The notes of other people's conversations; nothing if there are none. */
export function PeopleMemory() {
  const texts = useTexts().memory;
  const { data, error, refetch } = useQuery({
    queryKey: ["memory", "people"],
    queryFn: () => fetchJSON<{ items: PersonMemory[] }>("/api/memory/people"),
  });
  if (error) return <ErrorPane error={error} onRetry={() => void refetch()} />;
  if (!data || data.items.length === 0) return null;
  return (
    <Panel title={texts.people} help={texts.peopleHelp}>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        {data.items.flatMap((person) => {
          const name = person.name ? `${person.name} · ${person.platform}` : texts.unknownPerson(person.folder);
          return person.items
            .filter((file) => file.entries.length > 0)
            .map((file) => (
              <MemoryPanel
                key={file.path}
                file={file}
                title={texts.personFile(name, texts.personFiles[file.target] ?? file.target)}
                resource={`/api/memory/people/${encodeURIComponent(person.folder)}`}
              />
            ));
        })}
      </SimpleGrid>
    </Panel>
  );
}
