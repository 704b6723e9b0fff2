import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { showError } from "@/components/notices";

/**
 * Run a mutation, notify about its success or failure, and refetch the queries with these keys. A second one during
 * the first is ignored.
 */
export function useMutationRunner(...keys: string[]) {
  const client = useQueryClient();
  const isRunning = useRef(false); // a state would be one render late for the second click
  const [isBusy, setBusy] = useState(false);
  const queryKeys = keys.join(" ");
  const run = useCallback(
    async <T>(work: () => Promise<T>, done?: (result: T) => string): Promise<boolean> => {
      if (isRunning.current) return false;
      isRunning.current = true;
      setBusy(true);
      try {
        const result = await work();
        if (done) notifications.show({ message: done(result) });
        await Promise.all(queryKeys.split(" ").map((key) => client.invalidateQueries({ queryKey: [key] })));
        return true;
      } catch (error) {
        showError(error);
        return false;
      } finally {
        isRunning.current = false;
        setBusy(false);
      }
    },
    [client, queryKeys],
  );
  return { run, isBusy };
}
