/** Requests to the server of this page; other servers are refused. */

/** A failed request; `message` can be shown to the user. */
export class ApiError extends Error {
  readonly status: number;
  readonly login: LoginMethod | null;
  /** What is wrong with each field of the body, by its name. */
  readonly fields: Record<string, string>;

  constructor(status: number, message: string, login: LoginMethod | null = null, fields: Record<string, string> = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.login = login;
    this.fields = fields;
  }
}

/** How to sign in: with a link from the terminal, or with a password. */
export type LoginMethod = "link" | "password";

type LoginListener = (login: LoginMethod) => void;
const loginListeners = new Set<LoginListener>();

/** Subscribe to requests for a sign-in; returns the unsubscribe function. */
export function onLoginRequired(listener: LoginListener): () => void {
  loginListeners.add(listener);
  return () => void loginListeners.delete(listener);
}

function notifyLoginRequired(login: LoginMethod): void {
  for (const listener of loginListeners) listener(login);
}

/** The JSON of a path; throws an ApiError on failure. */
export async function fetchJSON<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetchChecked(path, init);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

/** The response of a path; throws an ApiError unless it succeeds. */
export async function fetchChecked(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await request(path, init);
  if (response.ok) return response;
  const error = await readError(response);
  if (error.status === 401 && error.login) notifyLoginRequired(error.login);
  throw error;
}

async function request(path: string, init: RequestInit): Promise<Response> {
  if (!path.startsWith("/") || path.startsWith("//")) throw new ApiError(0, `Not a path on this server: ${path}`);
  try {
    return await fetch(path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "Cannot reach the dashboard server. Check that `hermes dashboard` is running.");
  }
}

/** A request with a JSON body. */
export function sendJSON<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return fetchJSON<T>(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

async function readError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { detail?: unknown; field?: string; login?: LoginMethod };
    const message = formatDetail(body.detail) || response.statusText;
    const fields = body.field ? { [body.field]: message } : invalidFields(body.detail);
    return new ApiError(response.status, message, body.login ?? null, fields);
  } catch {
    return new ApiError(response.status, response.statusText || `The server returned status ${response.status}.`);
  }
}

/** Format an error detail; FastAPI reports invalid parameters as a list. */
export function formatDetail(detail: unknown): string {
  if (typeof detail === "string") return detail;
  if (!Array.isArray(detail)) return "";
  return detail
    .map((one: { loc?: unknown[]; msg?: string }) => `${String(one.loc?.at(-1) ?? "")}: ${one.msg ?? ""}`)
    .join("; ");
}

/** The fields of a body that FastAPI reports as invalid, each with its first problem. */
export function invalidFields(detail: unknown): Record<string, string> {
  const found: Record<string, string> = {};
  for (const one of Array.isArray(detail) ? (detail as { loc?: unknown[]; msg?: string }[]) : []) {
    const name = one.loc?.[0] === "body" ? String(one.loc[1] ?? "") : "";
    if (name) found[name] ??= one.msg ?? "";
  }
  return found;
}

/** A path with a query string; empty values are omitted, lists are repeated. */
export function withQuery(path: string, query: Record<string, unknown>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "" && one !== false) search.append(name, String(one));
    }
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}
