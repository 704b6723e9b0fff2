import { fetchJSON, withQuery } from "@/api/client";
import type { Attachment } from "@/chat/drafts";

interface UploadResponse {
  path: string;
  name: string;
  is_image: boolean;
}

/** Upload a file to where the agent can read it. */
export async function uploadAttachment(file: File): Promise<Attachment> {
  const found = await fetchJSON<UploadResponse>(withQuery("/api/uploads", { name: file.name }), {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
  return {
    name: found.name,
    path: found.path,
    isImage: found.is_image,
    preview: found.is_image ? URL.createObjectURL(file) : "",
  };
}
