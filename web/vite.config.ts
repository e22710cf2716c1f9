import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Without hashes in their names, a new build changes files and does not add any.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../src/elmore/serve/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "assets/page.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: { proxy: Object.fromEntries(apiRoutes().map((path) => [path, "http://127.0.0.1:8000"])) },
});

/** For `npx vite`, which serves the sources next to a running `elmore serve`. */
function apiRoutes(): string[] {
  return ["info", "words", "uses", "map", "groups", "nearest", "compare", "similarity", "tokenize", "score", "fill", "predict", "ready"].map(
    (name) => `^/${name}(\\?|$)`,
  );
}
