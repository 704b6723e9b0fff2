import { Button, FileButton, Loader } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { fetchJSON } from "@/api/client";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { refreshSessions } from "./sessionChanges";

/** A button that imports an export file; existing sessions are not changed. */
export function ImportButton() {
  const texts = useTexts().sessions;
  const client = useQueryClient();
  const [activeImport, setActiveImport] = useState<AbortController | null>(null);
  const importFile = async (file: File | null) => {
    if (!file) return;
    const controller = new AbortController();
    setActiveImport(controller);
    try {
      const headers = { "Content-Type": "application/octet-stream" };
      const { report } = await fetchJSON<ImportResponse>("/api/import", {
        method: "POST",
        headers,
        body: file,
        signal: controller.signal,
      });
      notifications.show({ message: texts.imported(report.imported, report.messages, report.unchanged) });
      await refreshSessions(client);
    } catch (error) {
      if (!controller.signal.aborted) showError(error);
    }
    setActiveImport(null);
  };
  if (activeImport) {
    return (
      <Button size="xs" variant="default" leftSection={<Loader size={12} />} onClick={() => activeImport.abort()}>
        {texts.cancelImport}
      </Button>
    );
  }
  return (
    <FileButton onChange={(file) => void importFile(file)}>
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
