import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { startProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('changes of runs that are killed again and again give the list when the last ones are applied', async () => {
  using folder = temporaryFolder();
  await using gateway = await startGatewayOverSandbox({ persons: 4_200 });
  await using door = await listeningGateway(gateway);
  const { persons } = gateway.sandbox;
  const file = folder.file('changes.ndjson');
  const state = folder.file('state');
  const target = ['--output', file, '--changes-since', state, '--resume', '--force'];
  const args = ['export', 'persons', ...target, '--url', door.url];
  const table = new Map<string, unknown>();
  let continued = 0;
  for (let night = 0; night < 3; night += 1) {
    for (const piece of [70, 40]) {
      await using program = startProgram(args);
      door.onPiece = (at, response) => {
        if (at !== piece) return;
        // The first run has then committed a part of what it read: a commit comes after 2,000 records.
        if (night === 0 && piece === 70) {
          response.cork();
          const hasCommitted = () => committedPages(`${file}.part.state`) > 0;
          void vi.waitUntil(hasCommitted, WAITING).finally(() => program.signal('SIGKILL'));
        } else program.signal('SIGKILL');
      };
      const { signal, stderr } = await program.ended;
      expect(signal).toBe('SIGKILL');
      expect(existsSync(file)).toBe(false);
      if (stderr.includes('Continuing')) continued += 1;
      if (night > 0) continue;
      persons.insert(2_000, 30);
      persons.remove(4_000, 20);
    }
    door.onPiece = () => {};
    await using program = startProgram(args);
    expect(await program.ended).toMatchObject({ code: 0 });
    for (const line of readFileSync(file, 'utf8').trimEnd().split('\n').filter(Boolean)) {
      const { op, id, record } = JSON.parse(line) as {
        op: string;
        id: string;
        record: { id: string };
      };
      if (op === 'delete') table.delete(id);
      else table.set(record.id, record);
    }
    rmSync(file);
  }
  expect(continued).toBeGreaterThan(0);
  const byId = new Map(persons.all().map((person) => [person.id, person]));
  expect(table).toEqual(byId);
  expect(readdirSync(folder.path)).toEqual(['state']);
});

const WAITING = { timeout: 30_000, interval: 20 };

/** Reads a copy of the state, which the program keeps locked. */
function committedPages(state: string): number {
  using folder = temporaryFolder();
  const copy = folder.file('copy');
  try {
    for (const suffix of ['', '-wal']) copyFileSync(`${state}${suffix}`, `${copy}${suffix}`);
    using database = new DatabaseSync(copy);
    return Number(database.prepare('SELECT count(*) AS pages FROM page').get()!['pages']);
  } catch {
    // It is not there yet, or was copied in the middle of a commit.
    return 0;
  }
}
