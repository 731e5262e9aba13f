import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { startFakeUpstream, type FakeUpstream } from '../support/imitations/scripted.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** An operator with a snapshot, tokens in a store, and the `schema` commands. */
export interface SchemaOperator extends AsyncDisposable {
  readonly upstream: FakeUpstream;
  readonly env: Record<string, string>;
  readonly folder: string;
  file(name: string): string;
  /** Writes a snapshot to the file. */
  put(sdl: string): void;
  /** The content of the snapshot. */
  snapshot(): string;
  run(...args: string[]): ReturnType<typeof runHere>;
}

export async function startSchemaOperator(): Promise<SchemaOperator> {
  const upstream = await startFakeUpstream({ persons: 1 });
  const folder = temporaryFolder();
  const path = folder.file('upstream.graphql');
  const env = {
    RECRUITING_URL: upstream.url,
    RECRUITING_SCHEMA: path,
    TOKEN_STORE: `sqlite:${folder.file('store/tokens.db')}`,
  };
  const { code, stderr } = await runHere(['tokens', 'import', upstream.tokenLink], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return {
    upstream,
    env,
    folder: folder.path,
    file: folder.file,
    put: (sdl) => writeFileSync(path, sdl),
    snapshot: () => readFileSync(path, 'utf8'),
    run: (...args) => runHere(['schema', ...args], env),
    [Symbol.asyncDispose]: async () => {
      await upstream[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
