/** What answers took: the sum over the requests of a turn. */
import type { RpcSchemas } from "./rpc";

type AnswerUsage = RpcSchemas["AnswerUsageInfo"];

/** Tokens, cost and time of one or more answers. */
export interface UsageSum {
  models: string[];
  requests: number;
  input: number;
  cached: number;
  output: number;
  reasoning: number;
  /** In dollars; null if no price is known. */
  cost: number | null;
  /** Whether a part of the cost or of the tokens is an estimate. */
  isEstimate: boolean;
  /** The time that the model took. */
  seconds: number;
}

/** A sum with one more answer. */
export function addUsage(sum: UsageSum | null | undefined, more: AnswerUsage): UsageSum {
  const models = sum?.models ?? [];
  return {
    models: models.includes(more.model) ? models : [...models, more.model],
    requests: (sum?.requests ?? 0) + 1,
    input: (sum?.input ?? 0) + more.input_tokens + more.cache_read_tokens + more.cache_write_tokens,
    cached: (sum?.cached ?? 0) + more.cache_read_tokens,
    output: (sum?.output ?? 0) + more.output_tokens,
    reasoning: (sum?.reasoning ?? 0) + more.reasoning_tokens,
    cost: addCosts(sum?.cost, more.cost_usd),
    isEstimate: (sum?.isEstimate ?? false) || more.cost_status === "estimated",
    seconds: (sum?.seconds ?? 0) + more.seconds,
  };
}

/** Two sums as one. */
export function joinUsage(one: UsageSum | null, other: UsageSum | null | undefined): UsageSum | null {
  if (!one || !other) return one ?? other ?? null;
  return {
    models: [...new Set([...one.models, ...other.models])],
    requests: one.requests + other.requests,
    input: one.input + other.input,
    cached: one.cached + other.cached,
    output: one.output + other.output,
    reasoning: one.reasoning + other.reasoning,
    cost: addCosts(one.cost, other.cost),
    isEstimate: one.isEstimate || other.isEstimate,
    seconds: one.seconds + other.seconds,
  };
}

/** Costs that are known; an unknown one is left out. */
function addCosts(one: number | null | undefined, other: number | null): number | null {
  if (one === null || one === undefined) return other;
  return one + (other ?? 0);
}
