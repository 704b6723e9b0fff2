// Writes dist/diagram.html: Mermaid in one file, for a sandboxed frame that may load nothing.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

const library = await readFile("node_modules/mermaid/dist/mermaid.min.js", "utf8");
const own = await readFile("src/diagrams/frame.js", "utf8");
// Inside a script element, these would end it or change how the rest is read.
const script = `${library}\n${own}`.replace(/<(?=!--|\/?script)/gi, "\\x3c");
const hash = createHash("sha256").update(script).digest("base64");
const policy = `script-src 'sha256-${hash}'`; // the server's policy allows inline scripts; this one only
const head = `<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><title>Diagram</title>`;
await writeFile(
  "dist/diagram.html",
  `<!doctype html><html lang="en"><head>${head}</head><body><script>${script}</script></body></html>\n`,
);
