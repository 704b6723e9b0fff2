/** Requests to the server this page came from, and to no other. */

/** An answer that is no success; `message` is a sentence for people. */
export class ApiError extends Error {
  readonly status: number;
  readonly login: Login | null;

  constructor(status: number, message: string, login: Login | null = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.login = login;
  }
}

/** How one gets in: with a fresh link from the terminal, or with a password. */
export type Login = "link" | "password";

type Listener = (login: Login) => void;
const listeners = new Set<Listener>();

/** Be told when the server wants to know who we are. */
export function onLogin(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function tellLogin(login: Login): void {
  for (const listener of listeners) listener(login);
}

/** The JSON a path answers with; an ApiError says in words what went wrong. */
export async function fetchJSON<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetchChecked(path, init);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

/** The answer of a path, as it came; an ApiError unless it is a success. */
export async function fetchChecked(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await reach(path, init);
  if (response.ok) return response;
  const error = await complaint(response);
  if (error.status === 401 && error.login) tellLogin(error.login);
  throw error;
}

async function reach(path: string, init: RequestInit): Promise<Response> {
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

async function complaint(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { detail?: unknown; login?: Login };
    return new ApiError(response.status, wordsOf(body.detail) || response.statusText, body.login ?? null);
  } catch {
    return new ApiError(response.status, response.statusText || `The server returned status ${response.status}.`);
  }
}

/** FastAPI tells wrong parameters as a list; people want a sentence. */
export function wordsOf(detail: unknown): string {
  if (typeof detail === "string") return detail;
  if (!Array.isArray(detail)) return "";
  return detail
    .map((one: { loc?: unknown[]; msg?: string }) => `${String(one.loc?.at(-1) ?? "")}: ${one.msg ?? ""}`)
    .join("; ");
}

/** A path with a query; what is empty is left out, lists are repeated. */
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
