/** Requests to the server this page came from, and to no other. */

/** An answer that is no success; `message` is a sentence for people. */
export class ApiError extends Error {
  readonly status: number;
  readonly login: LoginMethod | null;

  constructor(status: number, message: string, login: LoginMethod | null = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.login = login;
  }
}

/** How one gets in: with a fresh link from the terminal, or with a password. */
export type LoginMethod = "link" | "password";

type LoginListener = (login: LoginMethod) => void;
const loginListeners = new Set<LoginListener>();

/** Be told when the server wants to know who we are. */
export function onLoginRequired(listener: LoginListener): () => void {
  loginListeners.add(listener);
  return () => void loginListeners.delete(listener);
}

function notifyLoginRequired(login: LoginMethod): void {
  for (const listener of loginListeners) listener(login);
}

/** The JSON a path answers with; an ApiError says in words what went wrong. */
export async function fetchJSON<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetchChecked(path, init);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

/** The answer of a path, as it came; an ApiError unless it is a success. */
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
    const body = JSON.parse(text) as { detail?: unknown; login?: LoginMethod };
    return new ApiError(response.status, formatDetail(body.detail) || response.statusText, body.login ?? null);
  } catch {
    return new ApiError(response.status, response.statusText || `The server returned status ${response.status}.`);
  }
}

/** FastAPI tells wrong parameters as a list; people want a sentence. */
export function formatDetail(detail: unknown): string {
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
