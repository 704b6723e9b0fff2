import { fetchJSON, withQuery } from "@/api/client";

/** A file to send with the next message. */
export interface Attachment {
  name: string;
  path: string;
  isImage: boolean;
  /** The name under which an image is attached to the next message. */
  attachedName: string;
  /** The image in this browser; empty for other files. */
  preview: string;
}

interface UploadResponse {
  path: string;
  name: string;
  is_image: boolean;
}

type EnsureSession = () => Promise<string>;
type RpcCall = <T>(method: string, params?: Record<string, unknown>) => Promise<T>;

/** Upload a file to where the agent can read it; images are attached to the next message. */
export async function uploadAttachment(file: File, ensureSession: EnsureSession, call: RpcCall): Promise<Attachment> {
  const found = await fetchJSON<UploadResponse>(withQuery("/api/uploads", { name: file.name }), {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
  let attachedName = "";
  if (found.is_image) {
    await ensureSession();
    attachedName = (await call<{ attached: string }>("image.attach", { path: found.path })).attached;
  }
  return {
    name: found.name,
    path: found.path,
    isImage: found.is_image,
    attachedName,
    preview: found.is_image ? URL.createObjectURL(file) : "",
  };
}
