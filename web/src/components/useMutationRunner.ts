import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { showError } from "@/components/notices";

/** Run a mutation, notify about its success or failure, and refetch the queries with these keys. */
export function useMutationRunner(...keys: string[]) {
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const queryKeys = keys.join(" ");
  const run = useCallback(
    async <T>(work: () => Promise<T>, done?: (result: T) => string): Promise<boolean> => {
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
        setBusy(false);
      }
    },
    [client, queryKeys],
  );
  return { run, isBusy };
}
