import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { showError } from "@/components/notices";
import { useTexts } from "@/i18n";
import { applyBulkAction, type BulkAction, INVERSE_ACTIONS } from "./sessionChanges";

/** Apply an action to sessions, with a notification and an undo button. */
export function useBulkAction() {
  const texts = useTexts();
  const client = useQueryClient();
  const change = useCallback(
    async (ids: readonly string[], action: BulkAction, tag?: string, isUndo = false): Promise<void> => {
      try {
        const { done, changed, failed } = await applyBulkAction(client, ids, action, tag);
        if (done.length > 0) {
          const id = notifications.show({
            autoClose: 10_000,
            message: (
              <Group justify="space-between" wrap="nowrap">
                {texts.sessions.done[action]?.(done.length)}
                {!isUndo && changed.length > 0 && (
                  <Button
                    size="compact-sm"
                    variant="light"
                    onClick={() => {
                      notifications.hide(id);
                      void change(changed, INVERSE_ACTIONS[action], tag, true); // only what the action changed
                    }}
                  >
                    {texts.general.undo}
                  </Button>
                )}
              </Group>
            ),
          });
        }
        const [first] = failed;
        if (first) notifications.show({ color: "red", message: texts.sessions.failed(failed.length, first.detail) });
      } catch (error) {
        showError(error);
      }
    },
    [client, texts],
  );
  return change;
}
