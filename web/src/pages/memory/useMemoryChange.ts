import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { sendJSON } from "@/api/client";
import type { MemoryFile } from "@/api/types";
import { showError } from "@/components/notices";
import { showWithUndo } from "@/components/undo";
import { useTexts } from "@/i18n";

/** Save the entries of a file; fails if the agent has changed it meanwhile. */
export function useMemoryChange(file: MemoryFile, resource: string) {
  const texts = useTexts();
  const client = useQueryClient();
  const put = async (seen: string[], entries: string[]): Promise<MemoryFile> => {
    try {
      return await sendJSON<MemoryFile>("PUT", `${resource}/${file.target}`, { seen, entries });
    } finally {
      await Promise.all([
        client.invalidateQueries({ queryKey: ["memory"] }),
        client.invalidateQueries({ queryKey: ["facts"] }),
      ]);
    }
  };
  return async (entries: string[], done: string): Promise<void> => {
    const before = file.entries;
    const saved = await put(before, entries);
    showWithUndo(done, texts.general.undo, async () => {
      try {
        await put(saved.entries, before);
        notifications.show({ message: texts.memory.undone });
      } catch (error) {
        showError(error);
      }
    });
  };
}
