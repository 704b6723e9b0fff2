import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";

const SHOWN_MS = 10_000;

/** Show a message with a button that undoes what it reports. */
export function showWithUndo(message: string, label: string, undo: () => void): void {
  const id = notifications.show({
    autoClose: SHOWN_MS,
    message: (
      <Group justify="space-between" wrap="nowrap">
        {message}
        <Button
          size="compact-sm"
          variant="light"
          onClick={() => {
            notifications.hide(id);
            undo();
          }}
        >
          {label}
        </Button>
      </Group>
    ),
  });
}
