import { fetchJSON, withQuery } from "@/api/client";

/** A file that goes along with what is said next. */
export interface Attached {
  name: string;
  path: string;
  isImage: boolean;
}

interface Uploaded {
  path: string;
  name: string;
  is_image: boolean;
}

type Begin = () => Promise<string>;
type Call = <T>(method: string, params?: Record<string, unknown>) => Promise<T>;

/** Bring a file to where the agent can read it; a picture is shown to the model itself. */
export async function attach(file: File, begin: Begin, call: Call): Promise<Attached> {
  const found = await fetchJSON<Uploaded>(withQuery("/api/uploads", { name: file.name }), {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
  if (found.is_image) {
    await begin();
    await call("image.attach", { path: found.path });
  }
  return { name: found.name, path: found.path, isImage: found.is_image };
}
