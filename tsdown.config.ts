import { existsSync } from 'node:fs';
import { defineConfig, type UserConfig } from 'tsdown';

const shared: UserConfig = {
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: false,
  deps: { neverBundle: ['libsql'], alwaysBundle: [/^(?!libsql|node:)/], onlyBundle: false },
};

/** The lab and its models of known structure as a library, for the repository's scripts and benchmarks alone. */
const library = { ...shared, entry: { lab: 'scripts/lab/library.ts' }, outDir: 'build' };
/** Families of the ground-truth suite that its authors have not seen. */
const heldOut = 'test/lab/held-out/index.ts';

export default defineConfig([
  // What ships. Everything but the native SQLite binding is bundled, so that `npx` installs little and the program starts fast.
  {
    ...shared,
    entry: {
      main: 'src/main.ts',
      'mcp-py-client': 'src/mcp-py-client.ts',
      'mcp-py-server': 'src/mcp-py-server.ts',
      'search-worker': 'src/sessions/search-worker.ts',
      'lab-worker': 'src/lab/local/lab-worker.ts',
      'engine-worker': 'src/lab/engines/embedded/engine-worker.ts',
      'compute-worker': 'src/lab/engines/embedded/compute-worker.ts',
    },
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
  },
  // Where the whole repository is, not in an image's build.
  ...(existsSync(library.entry.lab)
    ? [{ ...library, entry: { ...library.entry, ...(existsSync(heldOut) && { 'held-out': heldOut }) } }]
    : []),
]);
