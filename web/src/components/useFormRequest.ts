import { type FormEvent, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { errorMessage } from "@/components/notices";

/** What is wrong with a form, by the name of the field; the name is empty for what concerns no field. */
export type FormProblems = Record<string, string>;

/**
 * Send a form. A second submission during the first is ignored; what the server refuses is shown at the fields
 * named in *fields*, and the first of them gets the focus.
 */
export function useFormRequest(fields: readonly string[]) {
  const form = useRef<HTMLFormElement>(null);
  const isSending = useRef(false); // a state would be one render late for the second click
  const [isBusy, setBusy] = useState(false);
  const [problems, setProblems] = useState<FormProblems>({});

  /** Show problems; the first field that has one gets the focus. */
  const refuse = (found: FormProblems) => {
    setProblems(found);
    const wrong = fields.find((name) => found[name]);
    if (wrong) requestAnimationFrame(() => form.current?.querySelector<HTMLElement>(`[name="${wrong}"]`)?.focus());
  };
  const run = async (work: () => Promise<void>) => {
    if (isSending.current) return;
    isSending.current = true;
    setBusy(true);
    try {
      await work();
      setProblems({});
    } catch (error) {
      refuse(problemsOf(error, fields));
    } finally {
      isSending.current = false;
      setBusy(false);
    }
  };
  const onSubmit = (work: () => Promise<void>) => (event: FormEvent) => {
    event.preventDefault();
    void run(work);
  };
  return { form, isBusy, problems, setProblems, refuse, run, onSubmit };
}

/** The problems of a failed request; one of a field that the form does not have concerns the whole form. */
export function problemsOf(error: unknown, fields: readonly string[]): FormProblems {
  const known = Object.entries(error instanceof ApiError ? error.fields : {}).filter(([name]) => fields.includes(name));
  return known.length > 0 ? Object.fromEntries(known) : { "": errorMessage(error) };
}
