import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const folder = fileURLToPath(new URL("../plugins/hermes-achievements/dashboard", import.meta.url));

/**
 * The bundled plugin: one script that brings no React of its own.
 *
 * It is built as anybody's plugin would be: what it needs of the page it takes from the window.
 */
export default defineConfig({
  publicDir: false,
  resolve: {
    alias: [
      { find: /^react$/, replacement: `${folder}/src/host/react.ts` },
      { find: /^react\/jsx-runtime$/, replacement: `${folder}/src/host/jsx-runtime.ts` },
    ],
  },
  build: {
    target: "es2022",
    outDir: `${folder}/dist`,
    emptyOutDir: true,
    lib: {
      entry: `${folder}/src/index.tsx`,
      formats: ["iife"],
      name: "HermesAchievements",
      fileName: () => "index.js",
      cssFileName: "style",
    },
  },
});
