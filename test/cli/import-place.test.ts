/** What `tokens import` says of the place where it puts the tokens. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startOperator } from './tokens-operator.ts';

const KEY = Buffer.alloc(32, 1).toString('base64');
const MEMORY = '/dev/shm';
const TMPFS = 0x01021994;
const hasMemory = typeOf(MEMORY) === TMPFS;
/** A full disk in a namespace of the process, which ends with it. */
const IN_NAMESPACE = ['--mount', '--map-root-user', 'sh', '-c'];
const canMount = spawnSync('unshare', [...IN_NAMESPACE, 'mount -t tmpfs tmpfs /mnt']).status === 0;

test('an import prints the absolute path of the store, and whether it is encrypted', async () => {
  const { tokens, service, storePath } = await startOperator();
  const TOKEN_STORE = `sqlite:${relative('.', storePath)}`;
  const plain = await tokens(['import', service.tokenLink], { env: { TOKEN_STORE } });
  expect(plain.stdout).toContain(
    `Token store: sqlite:${resolve(storePath)}, not encrypted (TOKEN_STORE_KEY is not set).`,
  );
  const env = { TOKEN_STORE, TOKEN_STORE_KEY: KEY };
  const sealed = await tokens(['import', service.makeNewSet(), '--replace'], { env });
  expect(sealed.stdout).toContain(
    `Token store: sqlite:${resolve(storePath)}, encrypted with TOKEN_STORE_KEY.`,
  );
});

test.runIf(hasMemory)(
  'an import into a store in memory warns of the next boot, and so does a move there',
  async () => {
    const folder = mkdtempSync(`${MEMORY}/recruiting-`);
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { tokens, service, done } = await startOperator();
    const TOKEN_STORE = `sqlite:${folder}/tokens.db`;
    const { code, stdout } = await tokens(['import', service.tokenLink], { env: { TOKEN_STORE } });
    expect(code).toBe(0);
    expect(stdout).toContain('is in memory: the tokens are lost with the next boot.');
    await done('import', service.makeNewSet());
    expect(await done('export', `sqlite:${folder}/moved.db`)).toContain('is in memory');
  },
);

test.runIf(canMount).each([
  ['for the store', 8, /The token store cannot be opened \(\/mnt\/store\/tokens\.db\)/],
  [
    'for the tokens',
    20,
    /could not be saved to the token store \(sqlite:\/mnt\/store\/tokens\.db\)/,
  ],
])(
  'an import to a disk without space %s names the store and what to do, and the link still works',
  async (_, kilobytes, where) => {
    const { service, env } = await startOperator();
    const { code, stderr } = await importOnDisk(kilobytes, service.tokenLink, env);
    expect(code).toBe(1);
    expect(stderr).toMatch(where);
    expect(stderr).toContain('There is no space left on its disk. Free some, and try again.');
    expect(stderr).toMatch(/Nothing was imported, and the link still works\.\n$/);
    expect(stderr).not.toContain('Check TOKEN_STORE');
    expect((await fetch(service.tokenLink)).status).toBe(200);
    expect(service.exchanges).toEqual([]);
  },
);

function importOnDisk(kilobytes: number, link: string, env: Record<string, string>) {
  const script = `mount -t tmpfs -o size=${kilobytes}k tmpfs /mnt && exec "$@"`;
  const command = [process.execPath, resolve('src/main.ts'), 'tokens', 'import', link];
  const settings = {
    PATH: process.env['PATH']!,
    ...env,
    TOKEN_STORE: 'sqlite:/mnt/store/tokens.db',
  };
  return new Promise<{ code: unknown; stderr: string }>((done) => {
    execFile(
      'unshare',
      [...IN_NAMESPACE, script, 'sh', ...command],
      { env: settings },
      (error, _, stderr) => done({ code: error?.code ?? 0, stderr }),
    );
  });
}

function typeOf(path: string): number | undefined {
  try {
    return statfsSync(path).type;
  } catch {
    return undefined;
  }
}
