import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { showError } from "@/components/notices";

/** Do something that changes things: say that it is done, or in words why not, and look at *keys* again. */
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
