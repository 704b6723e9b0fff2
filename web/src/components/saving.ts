/** Hand something to the person as a file. */
export function saveAs(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The bytes of a `data:` address. They are read here: the page may fetch from its own server and from nowhere else. */
export function bytesOf(address: string): Blob {
  const [head = "", body = ""] = address.split(",", 2);
  const letters = Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
  return new Blob([letters], { type: head.slice("data:".length).split(";")[0] });
}
