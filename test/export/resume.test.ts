import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { startProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';

const KINDS = ['keyset', 'record', 'position'] as const;
/** Nine commits. */
const PERSONS = 4_200;
/** Bytes. */
const BETWEEN_MOMENTS = 20_000;
const SUFFIXES = ['.part', '.part.state'];

describe.each(KINDS)('over %s cursors', (cursors) => {
  let folder: ReturnType<typeof temporaryFolder>;
  let gateway: GatewayOverService;
  let door: ListeningGateway;
  /** The files that a kill leaves at several moments of an export. */
  const moments: string[] = [];
  let whole: string;

  beforeAll(async () => {
    folder = temporaryFolder();
    gateway = await startGatewayOverService({ persons: PERSONS, cursors });
    door = await listeningGateway(gateway);
    const file = folder.file('first');
    const over = exportTo(file).then(() => true);
    let copied = 0;
    while (!(await Promise.race([over, nextTurn(false)]))) {
      const size = statSync(`${file}.part`, { throwIfNoEntry: false })?.size ?? 0;
      if (size < copied + BETWEEN_MOMENTS || !existsSync(`${file}.part.state`)) continue;
      copied = size;
      moments.push(folder.file(`moment-${size}`));
      copyExport(file, moments.at(-1)!);
    }
    whole = readFileSync(file, 'utf8');
  });
  afterAll(async () => {
    await door[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const exportTo = (file: string, ...more: string[]) =>
    runHere(['export', 'persons', '--output', file, '--url', door.url, ...more]);

  /** Leaves what an interruption can leave: its state, and the file after the committed part, cut anywhere. */
  const interrupt = ({ moment, log, rest }: { moment: number; log: number; rest: number }) => {
    const file = folder.file('interrupted');
    for (const suffix of ['', ...SUFFIXES]) rmSync(file + suffix, { force: true });
    copyExport(moments[moment % moments.length]!, file);
    const [part, state] = SUFFIXES.map((suffix) => file + suffix) as [string, string];
    truncateSync(state, Math.round(log * statSync(state).size));
    const committed = committedIn(state);
    const { size } = statSync(part);
    truncateSync(part, committed + Math.round(rest * (size - committed)));
    return { file, committed };
  };
  const cuts = {
    moment: fc.nat(1_000),
    log: fc.double({ min: 0, max: 1, noNaN: true }),
    rest: fc.double({ min: 0, max: 1, noNaN: true }),
  };

  test('wherever an export is interrupted, --resume gives the file that it would have given', async () => {
    expect(idsIn(whole)).toEqual(gateway.service.persons.all().map(({ id }) => id));
    expect(moments.length).toBeGreaterThan(4);
    let resumedBehindStart = 0;
    await fc.assert(
      fc.asyncProperty(fc.record(cuts), async (cut) => {
        const { file, committed } = interrupt(cut);
        expect(await exportTo(file, '--resume')).toMatchObject({ code: 0 });
        expect(readFileSync(file, 'utf8') === whole).toBe(true);
        expect(readdirSync(folder.path).filter((name) => name.startsWith('interrupted.'))).toEqual(
          [],
        );
        if (committed > 0) resumedBehindStart += 1;
      }),
      {
        endOnFailure: true,
        numRuns: randomRuns(cursors === 'keyset' ? 6 : 2),
        // In the middle of a line after the last commit.
        examples: [[{ moment: moments.length - 1, log: 1, rest: 0.5 }]],
      },
    );
    expect(resumedBehindStart).toBeGreaterThanOrEqual(usually(1));
  });

  test('what changes in the list before --resume repeats no record, and loses none that stayed', async () => {
    const place = fc.double({ min: 0, max: 1, noNaN: true });
    // Also those of earlier runs: the list stays as they left it, and the interrupted files are of the first one.
    const moved = new Set<string>();
    const change = fc.oneof(
      fc.record({
        kind: fc.constant('insert' as const),
        at: place,
        count: fc.integer({ min: 1, max: 120 }),
      }),
      // A cursor that names an offset skips records when earlier ones leave, for every client of the service.
      ...(cursors === 'position'
        ? []
        : [
            fc.record({ kind: fc.constant('move' as const), at: place, to: place }),
            fc.record({
              kind: fc.constant('remove' as const),
              at: place,
              count: fc.integer({ min: 1, max: 60 }),
            }),
          ]),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.record(cuts),
        fc.array(change, { minLength: 1, maxLength: 4 }),
        async (cut, changes) => {
          const { file } = interrupt(cut);
          const { persons } = gateway.service;
          const before = new Set(idsIn(whole));
          for (const edit of changes) {
            const at = positionOf(edit.at, persons.length);
            if (edit.kind === 'insert') persons.insert(at, edit.count);
            else if (edit.kind === 'remove') persons.remove(at, edit.count);
            else {
              moved.add(persons.slice(at, at + 1)[0]!.id);
              persons.move(at, positionOf(edit.to, persons.length));
            }
          }
          expect(await exportTo(file, '--resume')).toMatchObject({ code: 0 });
          const ids = idsIn(readFileSync(file, 'utf8'));
          expect(new Set(ids).size).toBe(ids.length);
          const stayed = persons.all().filter(({ id }) => before.has(id) && !moved.has(id));
          const written = new Set(ids);
          expect(stayed.filter(({ id }) => !written.has(id))).toEqual([]);
        },
      ),
      {
        endOnFailure: true,
        numRuns: randomRuns(4),
        // An exported record is moved to where the export continues.
        examples:
          cursors === 'position'
            ? []
            : [
                [
                  { moment: moments.length - 1, log: 1, rest: 0.5 },
                  [{ kind: 'move', at: 0.01, to: 1 }],
                ],
              ],
      },
    );
  });
});

test('an export that is killed, and then stopped, is whole in the end', async () => {
  using folder = temporaryFolder();
  await using gateway = await startGatewayOverService({ persons: PERSONS });
  await using door = await listeningGateway(gateway);
  const file = folder.file('persons.csv');
  const args = [
    'export',
    'persons',
    '--format',
    'csv',
    '--output',
    file,
    '--url',
    door.url,
    '--resume',
  ];
  const lengths: number[] = [];
  for (const [signal, request] of [
    ['SIGKILL', 8],
    ['SIGINT', 6],
  ] as const) {
    await using program = startProgram(args);
    door.onRequest = (at) => {
      if (at === request) program.signal(signal);
    };
    const { code, stderr } = await program.ended;
    expect(existsSync(file)).toBe(false);
    if (signal === 'SIGINT') {
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /stopped\. [\d,]+ records were written to .*--resume to continue\.\n$/,
      );
    }
    lengths.push(existsSync(`${file}.part`) ? statSync(`${file}.part`).size : 0);
  }
  expect(Math.max(...lengths)).toBeGreaterThan(0);
  // Two at once would mix their lines.
  await using lastRun = startProgram(args);
  const second = Promise.withResolvers<Awaited<ReturnType<typeof runHere>>>();
  door.onRequest = (at) => {
    if (at === 5) runHere(args).then(second.resolve, second.reject);
  };
  expect(await lastRun.ended).toMatchObject({ code: 0, signal: null });
  expect(await second.promise).toMatchObject({
    stderr: expect.stringMatching(/Another export is writing|is whole already/),
  });
  const [header, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(header).toBe('id,firstName');
  expect(rows.map((row) => row.split(',')[0])).toEqual(
    gateway.service.persons.all().map(({ id }) => id),
  );
  expect(readdirSync(folder.path)).toEqual(['persons.csv']);
});

function copyExport(from: string, to: string): void {
  for (const suffix of SUFFIXES) copyFileSync(from + suffix, to + suffix);
}

/** A position that leaves enough records for the removal. */
function positionOf(part: number, length: number): number {
  return Math.floor(part * (length - 60));
}

/** The length of the file that the last whole line of the state has recorded. */
function committedIn(state: string): number {
  const [begun, ...commits] = readFileSync(state, 'utf8').split('\n').slice(0, -1);
  const last = commits.at(-1);
  return begun === undefined || last === undefined
    ? 0
    : (JSON.parse(last) as { bytes: number }).bytes;
}

function idsIn(text: string): string[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: string }).id);
}
