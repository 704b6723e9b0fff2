import { Button, Group, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { sendJSON, withQuery } from "@/api/client";
import type { ModelCatalog } from "@/api/types";
import { FormDialog } from "@/components/FormDialog";
import { FormProblem } from "@/components/FormProblem";
import { onSubmit, useForm } from "@/components/useChange";
import { useTexts } from "@/i18n";

type Price = number | string;

const FIELDS = ["model", "input", "output", "cache_read", "cache_write"] as const;

interface Props {
  /** The model; empty for one whose name is entered. */
  model: string;
  catalog: ModelCatalog;
  onClose: () => void;
}

/** The price of a model; without one of its own, the known price applies. */
export function PriceForm({ model, catalog, onClose }: Props) {
  const { models: texts, general } = useTexts();
  const own = catalog.prices.find((price) => price.model === model);
  const known = catalog.items.find((item) => item.model === model);
  const [name, setName] = useState(model);
  const [input, setInput] = useState<Price>(own?.input ?? known?.input_price ?? "");
  const [output, setOutput] = useState<Price>(own?.output ?? known?.output_price ?? "");
  const [cacheRead, setCacheRead] = useState<Price>(own?.cache_read ?? "");
  const [cacheWrite, setCacheWrite] = useState<Price>(own?.cache_write ?? "");
  const { form, isBusy, problems, run } = useForm(FIELDS, "models");

  const change = async (work: () => Promise<unknown>, done: string) => {
    if (await run(work, done)) onClose();
  };
  const submit = onSubmit(() => {
    const optional = (price: Price) => (price === "" ? null : price);
    const body = {
      model: name.trim(),
      input,
      output,
      cache_read: optional(cacheRead),
      cache_write: optional(cacheWrite),
    };
    return change(() => sendJSON("PUT", "/api/models/prices", body), texts.priceSaved(body.model));
  });
  const remove = () =>
    void change(() => sendJSON("DELETE", withQuery("/api/models/prices", { model })), texts.priceRemoved(model));
  const price = (field: string, label: string, value: Price, onChange: (value: Price) => void) => (
    <NumberInput
      name={field}
      label={label}
      value={value}
      error={problems[field]}
      onChange={onChange}
      min={0}
      clampBehavior="none"
      decimalScale={6}
      prefix="$"
      hideControls
      flex="1 1 8rem"
    />
  );
  return (
    <FormDialog onClose={onClose} title={texts.priceTitle}>
      <form ref={form} onSubmit={submit}>
        <Stack gap="sm">
          <Text size="sm">{texts.priceHelp}</Text>
          <TextInput
            name="model"
            label={texts.model}
            description={texts.modelHelp}
            value={name}
            error={problems.model}
            readOnly={model !== ""}
            maxLength={200}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Group gap="sm">
            {price("input", texts.input, input, setInput)}
            {price("output", texts.output, output, setOutput)}
          </Group>
          <Group gap="sm">
            {price("cache_read", texts.cacheRead, cacheRead, setCacheRead)}
            {price("cache_write", texts.cacheWrite, cacheWrite, setCacheWrite)}
          </Group>
          <FormProblem text={problems[""]} />
          <Group justify="flex-end">
            {own && (
              <Button variant="subtle" onClick={remove} disabled={isBusy}>
                {texts.removePrice}
              </Button>
            )}
            <Button variant="default" onClick={onClose}>
              {general.cancel}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!name.trim() || input === "" || output === ""}>
              {general.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </FormDialog>
  );
}
