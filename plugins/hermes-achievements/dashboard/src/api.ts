/** Requests to the endpoints of the plugin. */
import { sdk } from "./host/sdk";

const PREFIX = "/api/plugins/hermes-achievements";

/** The JSON of an endpoint. */
export function fetchApi<T>(path: string, init?: RequestInit): Promise<T> {
  return sdk.fetchJSON<T>(`${PREFIX}${path}`, init);
}

/** The file of an endpoint. */
export async function fetchFile(path: string): Promise<Blob> {
  const response = await sdk.authedFetch(`${PREFIX}${path}`);
  return response.blob();
}

/** The message of anything that was thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Save a blob as a file. */
export function downloadBlob(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
