import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJSON } from "@/api/client";
import type { LogFileList } from "@/api/types";
import { EmptyState } from "@/components/EmptyState";
import { ErrorPane } from "@/components/ErrorPane";
import { LoadingIndicator } from "@/components/LoadingIndicator";
import { LogView } from "@/components/LogView";
import { Page } from "@/components/Page";
import { useTexts } from "@/i18n";
import { formatBytes } from "@/i18n/format";

/** The log files of Hermes. */
export default function LogsPage() {
  const texts = useTexts().logs;
  const [chosen, setChosen] = useState<string | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ["logs"],
    queryFn: () => fetchJSON<LogFileList>("/api/logs"),
  });
  const name = chosen ?? data?.items[0]?.name;
  return (
    <Page title={texts.title} lead={data && texts.lead(data.folder)}>
      {error && <ErrorPane error={error} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingIndicator />}
      {data?.items.length === 0 && <EmptyState title={texts.noneTitle} text={texts.none} />}
      {data && name && (
        <>
          <Select
            label={texts.file}
            maw={420}
            data={data.items.map((one) => ({ value: one.name, label: `${one.name} (${formatBytes(one.size)})` }))}
            value={name}
            allowDeselect={false}
            onChange={(value) => value && setChosen(value)}
          />
          <LogView key={name} name={name} />
        </>
      )}
    </Page>
  );
}
