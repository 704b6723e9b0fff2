/** The plugin's own endpoints. */
import { sdk } from "./host/sdk";

const PREFIX = "/api/plugins/hermes-achievements";

/** The JSON of one of them. */
export function fetchApi<T>(path: string, init?: RequestInit): Promise<T> {
  return sdk.fetchJSON<T>(`${PREFIX}${path}`, init);
}

/** A file of one of them. */
export async function fetchFile(path: string): Promise<Blob> {
  const response = await sdk.authedFetch(`${PREFIX}${path}`);
  return response.blob();
}

/** What went wrong, for people. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Let the browser save a file under a name. */
export function downloadBlob(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
