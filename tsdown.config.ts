import { defineConfig } from 'tsdown';

// Everything but the native SQLite binding is bundled, so that `npx` installs little and the program starts fast.
export default defineConfig({
  entry: { main: 'src/main.ts', 'search-worker': 'src/sessions/search-worker.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: false,
  minify: true,
  // What the shell client loads, in one file beside the entry.
  outputOptions: {
    codeSplitting: {
      groups: [
        {
          name: 'client',
          test: /src\/(errors|paths|process-tree|json-lines|cli\/(find-server|run)|surfaces\/bridge\/(discovery|server-record|client))\.ts/,
        },
      ],
    },
  },
  deps: { neverBundle: ['libsql'], alwaysBundle: [/^(?!libsql|node:)/], onlyBundle: false },
});
