import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { startService } from '../service/service.ts';
import type { Answer, Ask } from './cursors.ts';
import type { World } from './world.ts';

export interface Side extends AsyncDisposable {
  readonly ask: Ask;
}

/** Starts the product of a folder as a process in front of the world's service. */
export async function startProduct(
  folder: string,
  { schema, snapshot, prefix }: World,
): Promise<Side> {
  const service = await startService({ schema });
  const files = mkdtempSync(join(tmpdir(), 'judge-'));
  const file = join(files, 'upstream.graphql');
  writeFileSync(file, snapshot);
  const env = {
    PATH: process.env['PATH'],
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE: `sqlite:${join(files, 'tokens.db')}`,
    RECRUITING_SCHEMA: file,
    ALLOW_ANONYMOUS: 'true',
    PORT: '0',
    ADMIN_PORT: '0',
    PAGES_PER_MINUTE: '0',
    MAX_DEPTH: '100',
    MAX_ALIASES: '1000',
    MAX_TOKENS: '20000',
    LOG_LEVEL: 'fatal',
    ...(prefix !== undefined && { SCHEMA_PREFIX: prefix }),
  };
  const child = spawn(join(folder, 'node_modules/.bin/node'), ['src/main.ts', 'serve'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await addressOf(child);
  const ask = async (operation: object): Promise<Answer> => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(operation),
    });
    return (await response.json()) as Answer;
  };
  return {
    ask,
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill();
      await ended;
      await service.close();
      rmSync(files, { recursive: true });
    },
  };
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout!.on('data', (part) => {
      text += String(part);
      const [, url] = /GraphiQL +(http\S+)\/graphql/.exec(text) ?? [];
      if (url) resolve(url);
    });
    child.once('exit', () => reject(new Error(`It ended before it listened: ${text}`)));
  });
}
