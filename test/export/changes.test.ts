/** `export --changes-since`: what has changed since the last run, so that applying all changes gives the list. */
import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/export/changes.ts';
import { parseJson, type Json } from '../../src/json.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import {
  failure,
  makeExecutableSchema,
  pageOf,
  type PageArgs,
} from '../support/imitations/honest.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { whenWritten } from '../support/when-written.ts';

const SDL = `
  scalar Json
  type Query { persons(first: Int, after: String, status: String): PersonPage! }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! total: Int }
  type Person { id: ID! firstName: String data: Json }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const PAGE = 5;

interface Person {
  readonly id: string;
  readonly firstName: string;
  readonly data?: unknown;
}
const person = (number: number, firstName = `Name ${number}`): Person => ({
  id: `p${number}`,
  firstName,
});
const persons = (count: number) => Array.from({ length: count }, (_, number) => person(number));

/** A service with position cursors, whose list changes, behind a gateway; and a folder for the files. */
async function changingWorld(initial: readonly Person[] = persons(12)) {
  const service = {
    list: [...initial],
    /** Called before each page. @throws to fail it */
    onPage: () => {},
    /** Ids of persons whose name the service cannot give. */
    unreadable: new Set<string>(),
    /** How many records the service counts; null if it does not count them. */
    total: null as number | null,
  };
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: (_: unknown, args: PageArgs) => {
        service.onPage();
        return { ...pageOf([...service.list], args, PAGE), total: service.total };
      },
    },
    Person: {
      firstName: ({ id, firstName }: Person) => {
        if (service.unreadable.has(id)) throw failure('The service cannot read this.');
        return firstName;
      },
    },
  });
  const gateway = await startGatewayOverSandbox({ schema }, { snapshot: SDL });
  const door = await listeningGateway(gateway);
  const folder = temporaryFolder();
  const state = folder.file('state');
  const file = folder.file('changes.ndjson');
  const command = ['export', 'persons', '--changes-since', state, '--output', file];
  let stop = new AbortController();
  const run = (...args: string[]) => {
    stop = new AbortController();
    return runHere([...command, '--url', door.url, ...args], {}, [], { stop: stop.signal });
  };
  /** Fails a page, and stops the export when it has written the records before: then it waits to try again. */
  const failAndStop = (page: number, output = file): never => {
    const stopping = stop;
    if (page === 1) stopping.abort();
    else void whenWritten(output).then(() => stopping.abort());
    throw failure('The service is going down.');
  };
  /** Stops an export before a page of the service. */
  const cutOff = async (page: number, ...args: string[]) => {
    let pages = 0;
    service.onPage = () => {
      pages += 1;
      if (pages >= page) failAndStop(page);
    };
    const done = await run(...args);
    service.onPage = () => {};
    return done;
  };
  return {
    service,
    gateway,
    door,
    folder,
    state,
    file,
    run,
    cutOff,
    failAndStop,
    /** Exports the changes of now, removes their file, and returns its lines. */
    next: async (...args: string[]) => {
      expect(await run(...args)).toMatchObject({ code: 0 });
      return take(file);
    },
    [Symbol.asyncDispose]: async () => {
      await door[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

type Change = { op: 'upsert'; record: Person } | { op: 'delete'; id: string };

function take(file: string): Change[] {
  const text = readFileSync(file, 'utf8');
  rmSync(file);
  return changesIn(text);
}

function digestsIn(bytes: string): Set<string> {
  return new Set(bytes.match(/[\w+/]{43}=/g));
}

function changesIn(text: string): Change[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Change);
}

function apply(table: Map<string, Person>, changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.op === 'upsert') table.set(change.record.id, change.record);
    else table.delete(change.id);
  }
}

const upsert = ({ id, firstName, data = null }: Person) => ({
  op: 'upsert',
  record: { id, firstName, data },
});

test('the first run reports every record, and the next ones what was added, changed and removed since', async () => {
  await using world = await changingWorld();
  const { list } = world.service;
  expect(await world.next()).toEqual(list.map(upsert));
  expect(await world.next()).toEqual([]);
  list[3] = person(3, 'Ann');
  list.splice(7, 0, person(100));
  expect(await world.next()).toEqual([upsert(person(3, 'Ann')), upsert(person(100))]);
  expect(await world.next()).toEqual([]);
  // Deleted when a second walk does not meet it either.
  list.splice(5, 1);
  expect(await world.next()).toEqual([]);
  expect(await world.next()).toEqual([{ op: 'delete', id: 'p5' }]);
  expect(await world.next()).toEqual([]);
  // One that comes back is new.
  list.push(person(5));
  expect(await world.next()).toEqual([upsert(person(5))]);
});

test('the last line says how many records have changed and were deleted', async () => {
  await using world = await changingWorld();
  expect((await world.run()).stderr).toContain('12 records, 12 changed and 0 deleted, in ');
  rmSync(world.file);
  world.service.list.splice(0, 2);
  await world.next();
  world.service.list[0] = person(2, 'Ann');
  expect((await world.run()).stderr).toContain('10 records, 1 changed and 2 deleted, in ');
});

test('a record that one walk missed, and the next one met, is not reported as deleted', async () => {
  await using world = await changingWorld();
  await world.next();
  const { list } = world.service;
  for (let round = 0; round < 2; round += 1) {
    // A cursor that names a position skips a record when an earlier one is removed while the list is read.
    let pages = 0;
    const removed = list[0]!;
    world.service.onPage = () => {
      pages += 1;
      if (pages === 2) list.shift();
    };
    expect(await world.next()).toEqual([]);
    world.service.onPage = () => {};
    list.unshift(removed);
    expect(await world.next()).toEqual([]);
  }
});

test('values that are equal as JSON have not changed: the order of keys, white space, escapes, and forms of numbers', async () => {
  await using world = await changingWorld([{ ...person(0), data: { a: 1, b: [1.5, 'x'] } }]);
  await world.next('--fields', 'id data');
  const changed = async (data: unknown) => {
    world.service.list[0] = { ...person(0), data };
    return (await world.next('--fields', 'id data')).length;
  };
  expect(await changed({ b: [1.5, 'x'], a: 1 })).toBe(0);
  expect(await changed({ b: ['x', 1.5], a: 1 })).toBe(1);
  expect(await changed({ b: ['x', 1.5], a: '1' })).toBe(1);
  expect(await changed({ b: ['x', 1.5], a: '1', c: null })).toBe(1);
});

test.each<[a: string, b: string, isSame: boolean]>([
  ['1.50', '15e-1', true],
  ['100', '1.00E+2', true],
  ['0', '-0.0', true],
  ['12345678901234567890', '12345678901234567891', false],
  ['1', '-1', false],
  ['1', '10', false],
  ['"\\u0041"', '"A"', true],
  ['{ "b": [1, 2], "a": null }', '{"a":null,"b":[1,2]}', true],
  ['{"a":null}', '{}', false],
  ['"1"', '1', false],
  ['["a","b"]', '["a,b"]', false],
])('whether %s and %s are the same value: %s', (a, b, isSame) => {
  expect(digestOfValue(a) === digestOfValue(b)).toBe(isSame);
});

function digestOfValue(value: string): string {
  const record = parseJson(`{"_exportId":"1","value":${value}}`) as Json;
  return digestOf(Buffer.alloc(32), '"1"', record);
}

test('the state has ids and digests, no contents, and is for its owner only', async () => {
  await using world = await changingWorld();
  await world.next();
  const bytes = readFileSync(world.state, 'latin1');
  expect(bytes).toContain('p11');
  expect(bytes).not.toMatch(/Name \d/);
  expect(statSync(world.state).mode & 0o777).toBe(0o600);
  expect(readdirSync(world.folder.path)).toEqual(['state']);
  // Without the key, equal values cannot be recognized: another state has other digests.
  const first = digestsIn(bytes);
  expect(first.size).toBe(12);
  rmSync(world.state);
  await world.next();
  const second = digestsIn(readFileSync(world.state, 'latin1'));
  expect([...second].filter((digest) => first.has(digest))).toEqual([]);
});

test('a state of another list, of other fields or filters, or of another source is refused', async () => {
  await using world = await changingWorld();
  await world.next();
  const before = readFileSync(world.state);
  for (const args of [
    ['--fields', 'id firstName'],
    ['--args', 'status: "OPEN"'],
  ]) {
    expect(await world.run(...args)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/exported with another list, --fields or --args/),
    });
  }
  await using other = await listeningGateway(world.gateway);
  expect(await world.run('--url', other.url)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/were exported from http.*, and this one is from http/),
  });
  expect(existsSync(world.file)).toBe(false);
  expect(readFileSync(world.state).equals(before)).toBe(true);
  expect(await world.next()).toEqual([]);
});

test.each<[string, (state: string) => void, RegExp]>([
  ['is damaged', (state) => writeFileSync(state, 'x'.repeat(5_000)), /is damaged/],
  ['was emptied', (state) => writeFileSync(state, ''), /is damaged/],
  ['is a link', (state) => symlinkSync(`${state}-other`, state), /it is a link/],
  [
    'has a second name',
    (state) => {
      writeFileSync(`${state}-other`, '');
      linkSync(`${state}-other`, state);
    },
    /has a second name/,
  ],
])('a state that %s is refused', async (_, prepare, why) => {
  await using world = await changingWorld();
  prepare(world.state);
  expect(await world.run()).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
  expect(existsSync(world.file)).toBe(false);
});

test.each<[string[], RegExp]>([
  [['--limit', '3'], /Remove --limit/],
  [['--format', 'csv'], /NDJSON/],
  [['--fields', 'firstName'], /Add id to --fields/],
])('%j is refused, because changes cannot be reported or applied with it', async (args, why) => {
  await using world = await changingWorld();
  expect(await world.run(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
  expect(readdirSync(world.folder.path)).toEqual([]);
});

test('the state needs an existing folder, and its own file', async () => {
  await using world = await changingWorld();
  const elsewhere = world.folder.file('nowhere/state');
  expect(await world.run('--changes-since', elsewhere)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/There is no folder .*give --changes-since another path/),
  });
  expect(await world.run('--changes-since', world.file)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('The state is a file of its own'),
  });
  expect(readdirSync(world.folder.path)).toEqual([]);
});

test('changes are not written to the standard output, where a part of them could be applied', async () => {
  await using world = await changingWorld();
  const args = ['export', 'persons', '--changes-since', world.state, '--url', world.door.url];
  expect(await runHere(args)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('--output'),
  });
});

test('a file of changes is never replaced, because it may not have been applied', async () => {
  await using world = await changingWorld();
  await world.run();
  world.service.list[0] = person(0, 'Ann');
  const state = readFileSync(world.state);
  expect((await world.run()).code).toBe(2);
  expect(await world.run('--force')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Apply them and remove the file'),
  });
  for (const args of [['--resume'], ['--resume', '--force']]) {
    expect(await world.run(...args)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('is whole already. Apply its changes'),
    });
  }
  expect(readFileSync(world.state).equals(state)).toBe(true);
  expect(take(world.file)).toHaveLength(12);
  expect(await world.next()).toEqual([upsert(person(0, 'Ann'))]);
});

test('a value that the service cannot give is no change, and deletions wait for a walk without such values', async () => {
  await using world = await changingWorld();
  await world.next();
  const { list, unreadable } = world.service;
  list.splice(9, 1);
  await world.next();
  unreadable.add('p2');
  list[3] = person(3, 'Ann');
  expect(await world.run()).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(
      /1 record with values that could not be read was left out: .*\n.*\nDeletions were not looked for/,
    ),
  });
  expect(take(world.file)).toEqual([upsert(person(3, 'Ann'))]);
  unreadable.clear();
  expect(await world.next()).toEqual([{ op: 'delete', id: 'p9' }]);
});

test('a record that was never reported stays out of the changes until all of its values can be read', async () => {
  await using world = await changingWorld();
  const { unreadable } = world.service;
  for (const { id } of persons(12)) unreadable.add(id);
  const { code, stderr } = await world.run();
  expect({ code, changes: take(world.file) }).toEqual({ code: 3, changes: [] });
  expect(stderr).toMatch(
    /12 records with values that could not be read were left out: .* are missing\.\n/s,
  );
  expect(stderr).not.toContain('are null');
  unreadable.clear();
  expect(await world.next()).toEqual(persons(12).map(upsert));
});

test('a walk with fewer records than the service counts deletes nothing', async () => {
  await using world = await changingWorld();
  await world.next();
  const { service } = world;
  const [gone] = service.list.splice(9, 1);
  service.total = 12;
  for (const args of [[], ['--allow-fewer']]) {
    expect(await world.run(...args)).toMatchObject({
      code: args.length > 0 ? 0 : 4,
      stderr: expect.stringContaining('Deletions were not looked for'),
    });
    expect(take(world.file)).toEqual([]);
  }
  service.total = 11;
  expect(await world.next()).toEqual([]);
  expect(await world.next()).toEqual([{ op: 'delete', id: gone!.id }]);
});

test('changes of a list in which an id occurs twice are not reported, and the state stays', async () => {
  await using world = await changingWorld();
  await world.next();
  const before = readFileSync(world.state);
  world.service.list.splice(1, 0, person(0, 'Ann'));
  expect(await world.run()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('an id twice in one page'),
  });
  expect(existsSync(world.file)).toBe(false);
  expect(readFileSync(world.state).equals(before)).toBe(true);
});

test('changes can be compressed', async () => {
  await using world = await changingWorld();
  const file = world.folder.file('changes.ndjson.gz');
  expect(await world.run('--output', file)).toMatchObject({ code: 0 });
  expect(changesIn(gunzipSync(readFileSync(file)).toString())).toHaveLength(12);
});

test('two exports at the same time do not share a state', async () => {
  await using world = await changingWorld();
  const others: Promise<Awaited<ReturnType<typeof runHere>>>[] = [];
  world.service.onPage = () => {
    if (others.length === 0) {
      others.push(world.run('--output', world.folder.file('other')));
    }
  };
  expect(await world.run()).toMatchObject({ code: 0 });
  const other = await others[0]!;
  // It may have begun after the first one has ended.
  if (other.code !== 0) expect(other.stderr).toContain('Another export uses');
  else expect(readFileSync(world.folder.file('other'), 'utf8')).toBe('');
});

describe('a run that is cut off', () => {
  test('keeps the old state, and --resume continues it', async () => {
    await using world = await changingWorld();
    await world.next();
    const before = readFileSync(world.state);
    world.service.list.forEach(({ id }, at, list) => (list[at] = { id, firstName: 'new' }));
    expect((await world.cutOff(3)).code).toBe(1);
    expect(existsSync(world.file)).toBe(false);
    expect(readFileSync(world.state).equals(before)).toBe(true);
    const { code, stderr } = await world.run('--resume');
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('Continuing') });
    expect(take(world.file)).toEqual(world.service.list.map(upsert));
    expect(await world.next()).toEqual([]);
  });

  test('is not continued after a later run with its state', async () => {
    await using world = await changingWorld();
    await world.cutOff(2);
    const other = world.folder.file('other');
    expect(await world.run('--output', other)).toMatchObject({ code: 0 });
    expect(await world.run('--resume')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('with another state of --changes-since'),
    });
    expect(await world.next('--resume', '--force')).toEqual([]);
  });

  test('after the state was kept gets its file from the next run', async () => {
    await using world = await changingWorld();
    await world.next();
    world.service.list[0] = person(0, 'Ann');
    await withoutRename(() => world.run());
    expect(existsSync(world.file)).toBe(false);
    // Also when that run writes another file, and begins anew.
    const other = world.folder.file('other');
    const { code, stderr } = await world.run('--output', other, '--force');
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(`The changes of the last run are whole in ${world.file}.`),
    });
    expect(take(world.file)).toEqual([upsert(person(0, 'Ann'))]);
    expect(take(other)).toEqual([]);
    expect(readdirSync(world.folder.path)).toEqual(['state']);
  });

  test('before its deletions were kept writes them again', async () => {
    await using world = await changingWorld();
    await world.next();
    world.service.list.splice(4, 1);
    await world.next();
    const before = world.folder.file('before');
    copyFileSync(world.state, before);
    await withoutRename(() => world.run());
    // As if the process had been killed before the state was changed.
    copyFileSync(before, world.state);
    rmSync(before);
    expect(await world.next('--resume')).toEqual([{ op: 'delete', id: 'p4' }]);
    expect(await world.next()).toEqual([]);
  });
});

test('applying all changes gives the list, whatever changes, is cut off, continued or begun anew', async () => {
  const place = fc.double({ min: 0, max: 1, noNaN: true });
  const edit = fc.oneof(
    fc.record({ kind: fc.constant('insert' as const), at: place }),
    fc.record({ kind: fc.constant('remove' as const), at: place }),
    fc.record({ kind: fc.constant('move' as const), at: place, to: place }),
    fc.record({ kind: fc.constant('rename' as const), at: place, name: fc.nat(2) }),
  );
  const step = fc.record({
    edits: fc.array(edit, { maxLength: 6 }),
    /** Before this page, while the list is read. */
    during: fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), edit), { maxLength: 4 }),
    /** The page before which the run is stopped. */
    cut: fc.constantFrom(null, null, null, 1, 2, 3, 4, 6),
    isRenameLost: fc.constantFrom(false, false, false, true),
    isApplied: fc.boolean(),
    isOther: fc.boolean(),
    args: fc.constantFrom([], ['--resume'], ['--force'], ['--resume', '--force']),
  });
  let continued = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      await using world = await changingWorld(persons(18));
      const { service } = world;
      let added = 1_000;
      const change = (edited: typeof edit extends fc.Arbitrary<infer T> ? T : never) => {
        const { list } = service;
        const at = Math.floor(edited.at * list.length);
        if (edited.kind === 'insert') list.splice(at, 0, person((added += 1)));
        else if (list.length < 2) return;
        else if (edited.kind === 'remove') list.splice(at % list.length, 1);
        else if (edited.kind === 'rename') {
          const { id } = list[at % list.length]!;
          list[at % list.length] = { id, firstName: `Name ${edited.name}` };
        } else {
          const [moved] = list.splice(at % list.length, 1);
          list.splice(Math.floor(edited.to * list.length), 0, moved!);
        }
      };
      const table = new Map<string, Person>();
      const other = world.folder.file('other');
      /** The file of an earlier run comes first. */
      const applyAll = (latest: string) => {
        for (const file of [latest === other ? world.file : other, latest]) {
          if (existsSync(file)) apply(table, take(file));
        }
      };
      for (const { edits, during, cut, isRenameLost, isApplied, isOther, args } of steps) {
        edits.forEach(change);
        let pages = 0;
        service.onPage = () => {
          pages += 1;
          for (const [page, edited] of during) if (page === pages) change(edited);
          if (cut !== null && pages >= cut) world.failAndStop(cut, isOther ? other : world.file);
        };
        const run = () => world.run('--output', isOther ? other : world.file, ...args);
        const { code, stderr } = await (isRenameLost ? withoutRename(run) : run());
        expect({ isKnown: [0, 1, 2].includes(code), stderr }).toMatchObject({ isKnown: true });
        service.onPage = () => {};
        if (stderr.includes('Continuing')) continued += 1;
        // With two files that are not applied, it would not be known which was first.
        if (isApplied || existsSync(isOther ? world.file : other))
          applyAll(isOther ? other : world.file);
      }
      // The last step may have written another file than the next runs.
      for (const file of [world.file, other]) if (existsSync(file)) apply(table, take(file));
      for (let quiet = 0; quiet < 3; quiet += 1) {
        expect(await world.run('--resume', '--force')).toMatchObject({ code: 0 });
        applyAll(world.file);
      }
      const sorted = (all: Iterable<Person>) =>
        Array.from(all, ({ id, firstName }) => `${id} ${firstName}`).toSorted();
      expect(sorted(table.values())).toEqual(sorted(service.list));
    }),
    { endOnFailure: true, numRuns: randomRuns(12) },
  );
  expect(continued).toBeGreaterThanOrEqual(usually(1));
});

/** As if the process was killed before it could give a file its name. */
async function withoutRename<T>(work: () => Promise<T>): Promise<T> {
  const { rename } = promises;
  promises.rename = () => Promise.reject(Object.assign(new Error('killed'), { code: 'EIO' }));
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    promises.rename = rename;
    syncBuiltinESMExports();
  }
}
