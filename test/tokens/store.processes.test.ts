import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPostgresStore } from '../../src/tokens/postgres.ts';
import { OperatorMistake } from '../../src/errors.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { save, successor, type Rule } from '../../src/tokens/state.ts';
import { StoreUnavailable, type TokenStore } from '../../src/tokens/store.ts';
import { startService } from '../service/service.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { startPooler, type Pooler } from '../support/postgres/pooler.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { listenForTest } from '../support/listening.ts';
import { makeCertificate } from '../support/tokens/certificate.ts';
import { claimOf, importOf, pairOf, saveOf } from './values.ts';

let server: PostgresServer;
let pooler: Pooler;

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPooler(server.port);
});
afterAll(async () => {
  await pooler.close();
  await server.close();
});

/** Of every address that `emptyStore` returns. */
const PASSWORD = 'planted-password';
const KEYS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const;
const sealed = createSealer([KEYS[0]]);

const sqlite = (path: string, sealer = sealed) => openSqliteStore(path, sealer);
const postgres = (url: string, sealer = sealed) => openPostgresStore(url, sealer);

const newPath = () => join(temporaryFolder().path, 'store', 'tokens.db');
const throughPooler = (url: string) => url.replace(`:${server.port}/`, `:${pooler.port}/`);

/** Each change has a result of its own. */
const count: Rule<number> = (state) => {
  const refusals = state!.refusals + 1;
  return { next: { ...state!, refusals }, result: refusals };
};
const countTwice = async (store: TokenStore) => [
  await store.update(count),
  await store.update(count),
];

describe.each([
  ['SQLite', async () => newPath(), sqlite],
  ['PostgreSQL', () => server.emptyStore(), postgres],
  [
    'PostgreSQL behind a transaction pooler',
    async () => throughPooler(await server.emptyStore()),
    postgres,
  ],
] as const)('a store in %s', (_name, newAddress, open) => {
  test('is empty at first, and keeps what a rule makes of it for other processes', async () => {
    const address = await newAddress();
    const [one, other] = [open(address), open(address)];
    expect(await one.read()).toMatchObject({ state: null, now: expect.any(Number) });
    expect(await one.update(importOf('1'))).toBe('imported');
    expect((await other.read()).state).toMatchObject({ generation: 1, pair: pairOf('1') });
  });

  test('runs the rules of ten processes one after the other, the first import too', async () => {
    const address = await newAddress();
    const stores = Array.from({ length: 10 }, () => open(address));
    const imports = await Promise.all(stores.map((store, at) => store.update(importOf(`${at}`))));
    expect(imports.filter((outcome) => outcome === 'imported')).toHaveLength(1);
    const counts = (await Promise.all(stores.map(countTwice))).flat();
    expect(new Set(counts)).toEqual(new Set(Array.from({ length: 20 }, (_, at) => at + 1)));
  });

  test('changes nothing if a rule throws or returns no state', async () => {
    const store = open(await newAddress());
    await store.update(importOf('1'));
    const { state: before } = await store.read();
    const rejected = store.update(() => {
      throw new Error('planted');
    });
    await expect(rejected).rejects.toThrow('planted');
    await store.update(() => ({ result: undefined }));
    expect((await store.read()).state).toEqual(before);
  });

  test('keeps no token readable with a key, and is refused without it or with another one', async () => {
    const address = await newAddress();
    await open(address).update(importOf('1'));
    for (const keys of [[], [KEYS[1]]]) {
      await expect(open(address, createSealer(keys)).read()).rejects.toThrow(OperatorMistake);
    }
    const both = open(address, createSealer([KEYS[1], KEYS[0]]));
    const { state } = await both.read();
    await both.update(saveOf(state!, '2'));
    expect((await open(address, createSealer([KEYS[1]])).read()).state).toMatchObject({
      generation: 2,
    });
  });

  test.each([
    [2, /document 2.*run that version/],
    [undefined, /is damaged/],
  ])('refuses a document of version %s, and leaves it', async (version, message) => {
    const store = open(await newAddress());
    await store.update((_state, now) => {
      const { next } = importOf('1')(null, now);
      return { next: { ...next!, version: version as 1 }, result: undefined };
    });
    await expect(store.read()).rejects.toThrow(message);
    await expect(store.update(importOf('2', true))).rejects.toThrow(message);
  });
});

describe('a SQLite store', () => {
  test('has a private file in a private folder, without tokens in the clear', async () => {
    const path = newPath();
    await sqlite(path).update(importOf('1'));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    expect(readFileSync(path, 'latin1')).not.toMatch(/(access|refresh)-1/);
  });

  test.each<[string, (path: string) => void, object | null]>([
    ['removed', (path) => rmSync(path), null],
    ['replaced', (path) => renameSync(`${path}-2`, path), { pair: pairOf('1') }],
  ])('follows a file that was %s', async (_how, harm, found) => {
    const path = newPath();
    const store = sqlite(path);
    await store.update(importOf('1'));
    copyFileSync(path, `${path}-2`);
    await store.update(importOf('2', true));
    harm(path);
    const { state } = await store.read();
    if (found) expect(state).toMatchObject(found);
    else expect(state).toBeNull();
    await store.update(importOf('3', true));
    expect((await sqlite(path).read()).state).toMatchObject({ pair: pairOf('3') });
  });

  test('that a full disk left empty takes a pair', async () => {
    const path = newPath();
    mkdirSync(dirname(path));
    writeFileSync(path, '');
    expect((await sqlite(path).read()).state).toBeNull();
    await sqlite(path).update(importOf('1'));
    expect((await sqlite(path).read()).state).toMatchObject({ generation: 1 });
  });

  test('that cannot be opened may work again by itself', async () => {
    const path = newPath();
    mkdirSync(path, { recursive: true });
    await expect(sqlite(path).read()).rejects.toThrow(StoreUnavailable);
  });

  test('needs no more space for a save than for its claim, though the next tokens are longer', async () => {
    const path = newPath();
    const store = sqlite(path);
    await store.update(importOf('1'));
    await store.update(claimOf('a', 1));
    const { size } = statSync(path);
    const { state } = await store.read();
    const longer = pairOf('2', { accessToken: 'a'.repeat(5_000) });
    await store.update(save(successor(state!, longer, Date.now()), 'host/1'));
    expect(statSync(path).size).toBe(size);
  });

  test('that another program has locked blocks nothing else, and works once it is free', async () => {
    const path = newPath();
    const store = sqlite(path);
    await store.update(importOf('1'));
    using other = new DatabaseSync(path);
    other.exec('BEGIN EXCLUSIVE');
    const calls = Promise.all([store.read(), store.update(claimOf('a', 1))]);
    // A driver that waits by itself would not come here before its patience is over.
    other.exec('ROLLBACK');
    expect(await calls).toMatchObject([{ state: { generation: 1 } }, true]);
  });

  test.each([
    ['NFS', 0x6969],
    ['CIFS', 0xff534d42],
    ['SMB', 0x517b],
    ['SMB 2', 0xfe534d42],
  ])('on %s is refused before a file is created there', async (_name, type) => {
    const path = newPath();
    const store = openSqliteStore(path, sealed, { fileSystemOf: () => type });
    await expect(store.update(importOf('1'))).rejects.toThrow(
      /network file system.*use PostgreSQL/,
    );
    expect(existsSync(path)).toBe(false);
  });

  test.each<[string, (bytes: Buffer) => Buffer]>([
    ['not a database', (bytes) => bytes.fill('this is not a database. ')],
    ['overwritten in the middle', (bytes) => bytes.fill(0x5a, 4096, 12_288)],
    ['truncated', (bytes) => bytes.subarray(0, bytes.length / 2 + 100)],
  ])('that is %s is refused, and left as it is', async (_how, harm) => {
    const path = newPath();
    const written = sqlite(path);
    await written.update(importOf('1'));
    const bytes = harm(readFileSync(path));
    writeFileSync(path, bytes);
    const store = sqlite(path);
    await expect(store.read()).rejects.toThrow(/not a database|malformed|damaged/);
    await expect(store.update(importOf('2', true))).rejects.toThrow(
      /not a database|malformed|damaged/,
    );
    expect(readFileSync(path)).toEqual(bytes);
  });
});

describe('a PostgreSQL store', () => {
  test.each(['before', 'after'] as const)(
    'has the outcome of a rule whose connection is cut %s the server commits',
    async (when) => {
      const url = await server.emptyStore();
      const [direct, cut] = [postgres(url), postgres(throughPooler(url))];
      await direct.update(importOf('1'));
      await cut.read();
      const [claimed] = await Promise.all([cut.update(claimOf('a', 1)), pooler.cutAtCommit(when)]);
      expect(claimed).toBe(true);
      const { state } = await direct.read();
      expect(state).toMatchObject({ claim: { attempt: 'a' } });
      const [saved] = await Promise.all([
        cut.update(saveOf(state!, '2')),
        pooler.cutAtCommit(when),
      ]);
      expect(saved).toMatchObject({ generation: 2 });
      expect((await direct.read()).state).toMatchObject({ generation: 2, claim: null });
    },
  );

  test('whose row or table is removed is empty, and takes the next pair', async () => {
    const url = await server.emptyStore();
    const store = postgres(url);
    await store.update(importOf('1'));
    const { username } = new URL(url);
    for (const removal of ['DELETE FROM', 'DROP TABLE']) {
      await server.query(`${removal} ${username}.recruiting_tokens`);
      expect((await store.read()).state).toBeNull();
      expect(await store.update(importOf('1'))).toBe('imported');
    }
  });

  test('whose role may no longer create tables works with the table that it has', async () => {
    const url = await server.emptyStore();
    await postgres(url).update(importOf('1'));
    const { username } = new URL(url);
    await server.query(`REVOKE CREATE ON SCHEMA ${username} FROM ${username}`);
    expect(await postgres(url).update(claimOf('a', 1))).toBe(true);
  });

  test('waits a few seconds for a process that was stopped within a transaction, and no longer, and one of them gets the claim', async () => {
    const url = await server.emptyStore();
    const [store, stopped] = [postgres(url), postgres(throughPooler(url))];
    await store.update(importOf('1'));
    const before = pooler.stopAtCommit();
    const call = stopped.update(claimOf('of the stopped one', 1));
    await before;
    // Whoever is first then: each of them has the outcome of its rule.
    const claims = [await store.update(claimOf('a', 1)), await call];
    expect(new Set(claims)).toEqual(new Set([true, false]));
    const attempt = claims[0] ? 'a' : 'of the stopped one';
    expect((await store.read()).state).toMatchObject({ claim: { attempt } });
  }, 30_000);

  test.each<[string, (url: URL) => unknown, RegExp, isPassing?: boolean]>([
    ['a wrong password', (url) => (url.password = 'wrong'), /password authentication failed/],
    ['no database of that name', (url) => (url.pathname = '/nowhere'), /does not exist \(3D000\)/],
    ['no TLS there', (url) => setMode(url, 'require'), /does not support SSL/, true],
    ['no socket', (url) => (url.host = '%2Fnowhere'), /ENOENT/, true],
    ['a foreign certificate', meetImpostor, /certificate.*\(\w+\)/, true],
    ['a server with too many connections', refusesWith('53300'), /Not now/, true],
    ['a server that refuses this client', refusesWith('28000'), /Not now/],
  ])('waits or is refused, and says why without the password: %s', async (...row) => {
    const [, change, message, isPassing = false] = row;
    const url = new URL(await server.emptyStore());
    await change(url);
    const error = (await postgres(url.href)
      .read()
      .catch((each: unknown) => each)) as Error;
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain(PASSWORD);
    expect(error instanceof StoreUnavailable).toBe(isPassing);
  });

  test('shows no password in any command, and says which right is missing', async () => {
    await using service = await startService({ persons: 3 });
    using folder = temporaryFolder();
    const TOKEN_STORE = await server.emptyStore();
    const other = `sqlite:${folder.file('other.db')}`;
    const TOKEN_RESCUE_DIR = folder.file('rescue');
    const env = { RECRUITING_URL: service.url, TOKEN_STORE, TOKEN_RESCUE_DIR };
    const expectSaid = async (args: string[], code: number, said: RegExp, more = {}) => {
      const exit = await runHere(['tokens', ...args], { ...env, ...more });
      const text = exit.stdout + exit.stderr;
      expect([exit.code, text]).toEqual([code, expect.stringMatching(said)]);
      expect(text).not.toContain(PASSWORD);
    };
    const { username: schema } = new URL(TOKEN_STORE);
    await server.query(`REVOKE CREATE ON SCHEMA ${schema} FROM ${schema}`);
    const missing = /permission denied for schema/;
    await expectSaid(['import', service.tokenLink], 1, missing);
    await server.query(`GRANT CREATE ON SCHEMA ${schema} TO ${schema}`);
    await expectSaid(['import', service.tokenLink], 0, /generation 2 is in use/);
    await expectSaid(['status'], 0, /healthy\n +Store +postgres:\/\/store_\d+@127\.0\.0\.1:\d+\/p/);
    await expectSaid(['export', TOKEN_STORE], 1, /has a token set that is in use/);
    await expectSaid(['export', other], 0, /is in sqlite:\/.*other\.db now/);
    const back = /is in postgres:\/\/store_\d+@127.*Set TOKEN_STORE to its address/;
    await expectSaid(['export', TOKEN_STORE], 0, back, { TOKEN_STORE: other });
    await expectSaid(['refresh'], 0, /is in use/);
  });

  test('works again by itself after its server was down', async () => {
    const url = await server.emptyStore();
    const store = postgres(url);
    await store.update(importOf('1'));
    await server.stop();
    await expect(store.read()).rejects.toThrow(StoreUnavailable);
    await server.start();
    await expect.poll(async () => (await store.read()).state?.generation).toBe(1);
  });
});

function setMode({ searchParams }: URL, mode: string, sslrootcert?: string): void {
  searchParams.set('sslmode', mode);
  if (sslrootcert !== undefined) searchParams.set('sslrootcert', sslrootcert);
}

/** A server with another certificate. */
async function meetImpostor(url: URL): Promise<void> {
  const certificate = await makeCertificate();
  const impostor = createServer((socket) =>
    // The first message of a client asks for TLS.
    socket.once('data', () => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, ...certificate }).on('error', () => {});
    }),
  );
  url.host = `localhost:${await listenForTest(impostor)}`;
  setMode(url, 'require');
}

/** A server whose first message is an error. */
function refusesWith(code: string) {
  return async (url: URL) => {
    const refusing = createServer((socket) => {
      const fields = Buffer.from(`SFATAL\0C${code}\0MNot now.\0\0`);
      const length = Buffer.alloc(4);
      length.writeInt32BE(fields.length + 4);
      socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, fields])));
    });
    url.host = `localhost:${await listenForTest(refusing)}`;
  };
}
