import { defineConfig } from 'tsdown';

// Everything but the native SQLite binding is bundled, so that `npx` installs little and the program starts fast.
export default defineConfig({
  entry: {
    main: 'src/main.ts',
    'mcp-py-client': 'src/mcp-py-client.ts',
    'mcp-py-server': 'src/mcp-py-server.ts',
    lab: 'src/lab/index.ts',
    'search-worker': 'src/sessions/search-worker.ts',
    'lab-worker': 'src/lab/lab-worker.ts',
    'engine-worker': 'src/lab/engines/embedded/engine-worker.ts',
    'compute-worker': 'src/lab/engines/embedded/compute-worker.ts',
  },
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
