/** The options of the model menu, grouped by provider. */
import type { RpcSchemas } from "@/chat/rpc";
import { formatDollars, formatInteger } from "@/i18n/format";

/** A model of the server's list. */
export type ListedModel = Pick<RpcSchemas["ModelSummary"], "name" | "provider"> & Partial<RpcSchemas["ModelSummary"]>;

export interface ModelOption {
  value: string;
  label: string;
  detail: string;
}

export interface ModelGroup {
  group: string;
  items: ModelOption[];
}

interface Texts {
  other: string;
  window: (thousands: string) => string;
  price: (input: string, output: string) => string;
}

/** The listed name of a model that a conversation names without its provider or server. */
export function listedName(current: string, models: ListedModel[]): string {
  const same = [...new Set(models.map((one) => one.name).filter((name) => isQualified(name, current)))];
  return same.length === 1 && same[0] ? same[0] : current;
}

function isQualified(name: string, model: string): boolean {
  return Boolean(model) && (name.endsWith(`#${model}`) || name.endsWith(`:${model}`));
}

/** Models by provider, without duplicates; the current model is always among them. */
export function modelGroups(current: string, models: ListedModel[], texts: Texts): ModelGroup[] {
  const listed = [...new Map(models.map((one) => [one.name, one])).values()];
  const unique = listed.filter((one) => listedName(one.name, listed) === one.name);
  const isListed = !current || unique.some((one) => one.name === current);
  const all = isListed ? unique : [{ name: current, provider: texts.other }, ...unique];
  const counts = new Map<string, number>();
  for (const one of all) counts.set(shortName(one.name), (counts.get(shortName(one.name)) ?? 0) + 1);
  const groups = new Map<string, ModelOption[]>();
  for (const one of all) {
    const label = counts.get(shortName(one.name)) === 1 ? shortName(one.name) : one.name;
    const items = groups.get(one.provider) ?? [];
    groups.set(one.provider, [...items, { value: one.name, label, detail: describe(one, texts) }]);
  }
  return [...groups].map(([group, items]) => ({ group, items }));
}

/** The name of a model without the address of its server or the folder of its file. */
export function shortName(name: string): string {
  const model = /^https?:\/\/.*#(.+)$/.exec(name)?.[1] ?? name;
  return /^([~/]|[a-z]:\\)/i.test(model) ? (model.split(/[/\\]/).at(-1) ?? model) : model;
}

function describe(model: ListedModel, texts: Texts): string {
  const parts = [];
  if (model.window) parts.push(texts.window(formatInteger(Math.round(model.window / 1000))));
  if (model.input_price != null && model.output_price != null) {
    parts.push(texts.price(formatDollars(model.input_price), formatDollars(model.output_price)));
  }
  return parts.join(" · ");
}
