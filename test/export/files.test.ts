/** Whom the files of an export belong to, and who may write them: in a folder where others may write as well. */
import {
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let gateway: TestGateway;
let door: ListeningGateway;
const folder = temporaryFolder();
beforeAll(async () => {
  gateway = await startGatewayOverSandbox();
  door = await listeningGateway(gateway);
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let count = 0;
/** A folder of its own, with a file in it that must stay as it is. */
function newPlace() {
  const place = folder.file(`place-${(count += 1)}`);
  mkdirSync(place);
  const precious = `${place}/precious`;
  writeFileSync(precious, 'precious\n');
  return { place, file: `${place}/persons.ndjson`, precious };
}
const exportTo = (file: string, ...more: string[]) =>
  runHere(['export', 'persons', '--output', file, '--url', door.url, ...more]);
const SUFFIXES = ['.part', '.part.state', '.part.state-wal', '.part.state-journal'] as const;

test.each(SUFFIXES)('a link that was planted at <output>%s is not followed', async (suffix) => {
  const { place, file, precious } = newPlace();
  symlinkSync(precious, file + suffix);
  if (!suffix.includes('-')) {
    // Without --force it is what an interrupted export left.
    expect(await exportTo(file)).toMatchObject({ code: 2 });
    expect(await exportTo(file, '--resume')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/begin anew with --force/i),
    });
  }
  expect(await exportTo(file, '--force')).toMatchObject({ code: 0 });
  expect(readFileSync(precious, 'utf8')).toBe('precious\n');
  expect(lines(file)).toHaveLength(137);
  expect(lstatSync(file).isFile()).toBe(true);
  expect(readdirSync(place).toSorted()).toEqual(['persons.ndjson', 'precious']);
});

test.each(['.part', '.part.state'] as const)(
  'a link at <output>%s to a missing file creates no file',
  async (suffix) => {
    const { place, file } = newPlace();
    symlinkSync(`${place}/nowhere`, file + suffix);
    for (const option of [[], ['--resume'], ['--force']]) {
      await exportTo(file, ...option);
      expect(existsSync(`${place}/nowhere`)).toBe(false);
    }
    expect(lines(file)).toHaveLength(137);
  },
);

test.each(['.part', '.part.state'] as const)(
  'a second name of another file at <output>%s is not written',
  async (suffix) => {
    const { file, precious } = newPlace();
    linkSync(precious, file + suffix);
    expect(await exportTo(file, '--resume')).toMatchObject({ code: 2 });
    expect(await exportTo(file, '--force')).toMatchObject({ code: 0 });
    expect(readFileSync(precious, 'utf8')).toBe('precious\n');
  },
);

test('a folder in the place of a file of the export is reported with its name', async () => {
  const { file } = newPlace();
  mkdirSync(`${file}.part`);
  for (const option of ['--resume', '--force']) {
    expect(await exportTo(file, option)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${file}.part is a folder`),
    });
  }
});

test('the files are for their owner only, while they are written and afterwards', async () => {
  const { file } = newPlace();
  writeFileSync(file, 'an earlier export\n', { mode: 0o644 });
  let modes: number[] = [];
  door.onPiece = () => {
    const written = SUFFIXES.map((suffix) => file + suffix).filter((path) => existsSync(path));
    modes = written.map((path) => statSync(path).mode & 0o777);
  };
  onTestFinished(() => void (door.onPiece = () => {}));
  expect((await exportTo(file, '--force')).code).toBe(0);
  expect(modes.length).toBeGreaterThanOrEqual(2);
  expect(new Set([...modes, statSync(file).mode & 0o777])).toEqual(new Set([0o600]));
});

test('a second export of the same file says that another one is writing it, and the first becomes whole', async () => {
  const { file } = newPlace();
  const others: Awaited<ReturnType<typeof runHere>>[] = [];
  const begun = Promise.withResolvers<void>();
  // The first one tries again and again, until the others have ended.
  door.onPiece = (_piece, response) => {
    if (!existsSync(`${file}.part`)) return;
    begun.resolve();
    response.socket!.destroy();
  };
  const first = exportTo(file);
  await begun.promise;
  const door2 = await listeningGateway(gateway);
  for (const option of [[], ['--resume'], ['--force']]) {
    const args = ['export', 'persons', '--output', file, '--url', door2.url, ...option];
    others.push(await runHere(args));
  }
  await door2[Symbol.asyncDispose]();
  door.onPiece = () => {};
  expect(await first).toMatchObject({ code: 0 });
  for (const { code, stderr } of others) {
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('Another export is writing'),
    });
  }
  expect(lines(file)).toHaveLength(137);
});

test('an output that is a link of this user stays a link', async () => {
  const { file, place, precious } = newPlace();
  symlinkSync(precious, file);
  expect((await exportTo(file, '--force')).code).toBe(0);
  expect(lstatSync(file).isSymbolicLink()).toBe(true);
  expect(lines(precious)).toHaveLength(137);
  expect(readdirSync(place).toSorted()).toEqual(['persons.ndjson', 'precious']);
});

test.skipIf(userInfo().uid !== 0)(
  'an output that is a link of another user is refused',
  async () => {
    const { file, precious } = newPlace();
    symlinkSync(precious, file);
    lchownSync(file, 12_345, 12_345);
    expect(await exportTo(file, '--force')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('a link that belongs to another user'),
    });
    expect(readFileSync(precious, 'utf8')).toBe('precious\n');
  },
);

function lines(file: string): string[] {
  return readFileSync(file, 'utf8').trimEnd().split('\n');
}
