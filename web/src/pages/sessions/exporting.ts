import { fetchChecked } from "@/api/client";
import { showError } from "@/components/notices";
import { saveAs } from "@/components/saving";

/** An export file with these sessions, as `hermes sessions export` writes it. */
export async function downloadExport(ids: string[]): Promise<void> {
  try {
    const response = await fetchChecked("/api/export", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ids, format: "jsonl" }),
    });
    saveAs(await response.blob(), nameIn(response) ?? "hermes-export.jsonl");
  } catch (error) {
    showError(error);
  }
}

function nameIn(response: Response): string | undefined {
  return /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
}
