import { Button, FileButton, Loader } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJSON } from "@/api/client";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { refresh } from "./changes";

/** Take in an export file: nothing that is here already is changed. */
export function ImportButton() {
  const texts = useTexts().sessions;
  const client = useQueryClient();
  const [running, setRunning] = useState<AbortController | null>(null);
  const take = async (file: File | null) => {
    if (!file) return;
    const way = new AbortController();
    setRunning(way);
    try {
      const headers = { "Content-Type": "application/octet-stream" };
      const { report } = await fetchJSON<ImportResponse>("/api/import", {
        method: "POST",
        headers,
        body: file,
        signal: way.signal,
      });
      notifications.show({ message: texts.imported(report.imported, report.messages, report.unchanged) });
      await refresh(client);
    } catch (error) {
      if (!way.signal.aborted) showError(error);
    }
    setRunning(null);
  };
  if (running) {
    return (
      <Button size="xs" variant="default" leftSection={<Loader size={12} />} onClick={() => running.abort()}>
        {texts.cancelImport}
      </Button>
    );
  }
  return (
    <FileButton onChange={(file) => void take(file)}>
      {(props) => (
        <Button {...props} size="xs" variant="default">
          {texts.import}
        </Button>
      )}
    </FileButton>
  );
}

interface ImportResponse {
  report: { imported: number; messages: number; unchanged: number };
}
