import { createHash } from 'node:crypto';
import process from 'node:process';
import { startService, type ServiceOptions } from '../../test/service/service.ts';

/** Commands of the benchmark to its sandbox, besides HTTP. */
export type SandboxCommand =
  /** Inserts new persons in front of those at these positions, one after the other. */
  | { readonly do: 'insert'; readonly at: readonly number[] }
  | { readonly do: 'remove'; readonly at: readonly number[] }
  /** Replaces the list by this many persons, all of them new. */
  | { readonly do: 'replace'; readonly persons: number }
  /** Sets the clock of the sandbox ahead, by which its tokens expire. */
  | { readonly do: 'pass'; readonly seconds: number }
  | { readonly do: 'look' };

/** The state after a command. */
export interface SandboxState {
  readonly persons: number;
  /** A hash of the ids, in the order of the list. */
  readonly digest: string;
  /** Requests to /graphql so far. */
  readonly requests: number;
}

export interface SandboxAddress {
  readonly url: string;
  readonly tokenLink: string;
}

let passed = 0;
const sandbox = await startService({
  ...(JSON.parse(process.argv[2]!) as ServiceOptions),
  keepsRequests: false,
  now: () => Date.now() + passed * 1_000,
});
const { persons, stats, url, tokenLink } = sandbox;

process.on('message', (command: SandboxCommand) => {
  if (command.do === 'insert') for (const at of command.at) persons.insert(at);
  if (command.do === 'remove') for (const at of command.at) persons.remove(at);
  if (command.do === 'replace') {
    persons.remove(0, persons.length);
    persons.insert(0, command.persons);
  }
  if (command.do === 'pass') passed += command.seconds;
  const digest = createHash('sha256');
  for (const { id } of persons.all()) digest.update(`${id}\n`);
  process.send!({
    persons: persons.length,
    digest: digest.digest('hex'),
    requests: stats.requests.graphql,
  } satisfies SandboxState);
});
// The benchmark has ended, for whatever reason.
process.on('disconnect', () => process.exit());
process.send!({ url, tokenLink } satisfies SandboxAddress);
