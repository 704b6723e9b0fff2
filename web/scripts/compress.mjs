// Writes FILE.br and FILE.gz beside every built text file, so that the server only has to hand them out.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const FOLDERS = ["dist", "../plugins/hermes-achievements/dashboard/dist"];
const TEXT = new Set([".js", ".css", ".svg", ".json"]);
const FRAME = "diagram.html"; // other pages are written for each response
const SMALLEST = 1024;
const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

for (const folder of FOLDERS) {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || !(TEXT.has(extname(path)) || entry.name === FRAME)) continue;
    const bytes = await readFile(path);
    if (bytes.length < SMALLEST) continue;
    const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    await writeFile(`${path}.br`, await brotli(bytes, { params }));
    await writeFile(`${path}.gz`, await zip(bytes, { level: 9 }));
  }
}
