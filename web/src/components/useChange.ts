import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import type { ResourceKey } from "@/api/keys";
import { errorMessage, showError } from "@/components/notices";

/**
 * Change something: notify about it with the text *done*, and read the resources *keys* again. The answer is whether
 * it succeeded; a failure goes to *refuse*. A second change during the first is ignored.
 */
export function useChange(...keys: ResourceKey[]) {
  const client = useQueryClient();
  const mutationKey = [useId()];
  const { mutateAsync, isPending: isBusy } = useMutation({
    mutationKey,
    mutationFn: (work: () => Promise<void>) => work(),
    networkMode: "always", // the server of this page may be on this machine
    gcTime: 0,
  });
  async function run<T>(work: () => Promise<T>, done?: string | ((result: T) => string), refuse = showError) {
    // The cache knows of a first click at once, isPending one render later.
    if (client.isMutating({ mutationKey }) > 0) return false;
    try {
      await mutateAsync(async () => {
        const result = await work();
        if (done) notifications.show({ message: typeof done === "string" ? done : done(result) });
        await Promise.all(keys.map((key) => client.invalidateQueries({ queryKey: [key] })));
      });
      return true;
    } catch (error) {
      refuse(error);
      return false;
    }
  }
  return { run, isBusy };
}

/** What is wrong with a form, by the name of the field; the name is empty for what concerns no field. */
export type FormProblems = Record<string, string>;

/** Send a form; what the server refuses is shown at its *fields*, and the first of them gets the focus. */
export function useForm(fields: readonly string[], ...keys: ResourceKey[]) {
  const change = useChange(...keys);
  const form = useRef<HTMLFormElement>(null);
  const [problems, setProblems] = useState<FormProblems>({});

  /** Show problems; the first field that has one gets the focus. */
  const refuse = (found: FormProblems) => {
    setProblems(found);
    const wrong = fields.find((name) => found[name]);
    if (wrong) requestAnimationFrame(() => form.current?.querySelector<HTMLElement>(`[name="${wrong}"]`)?.focus());
  };
  async function run<T>(work: () => Promise<T>, done?: string | ((result: T) => string)) {
    const isDone = await change.run(work, done, (error) => refuse(problemsOf(error, fields)));
    if (isDone) setProblems({});
    return isDone;
  }
  return { form, isBusy: change.isBusy, problems, setProblems, refuse, run };
}

/** The handler of a form's submission that leaves the page where it is. */
export function onSubmit(work: () => unknown) {
  return (event: FormEvent) => {
    event.preventDefault();
    void work();
  };
}

/** The problems of a failed request; one of a field that the form does not have concerns the whole form. */
function problemsOf(error: unknown, fields: readonly string[]): FormProblems {
  const known = Object.entries(error instanceof ApiError ? error.fields : {}).filter(([name]) => fields.includes(name));
  return known.length > 0 ? Object.fromEntries(known) : { "": errorMessage(error) };
}
