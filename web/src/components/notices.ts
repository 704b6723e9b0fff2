import { notifications } from "@mantine/notifications";

/** The message of anything that was thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Show an error as a notification. */
export function showError(error: unknown): void {
  notifications.show({ color: "red", message: errorMessage(error) });
}
