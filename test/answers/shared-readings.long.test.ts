import { afterAll, beforeAll, expect, test } from 'vitest';
import { documentedSdl } from '../support/documented-sdl.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest } from '../support/imitations/scripted.ts';
import { someOf } from '../support/random/some-of.ts';
import { ACCEPTED, joinedAnswer, type Accepted } from '../support/clients/multipart.ts';

/** Callers who send one text at the same time. */
interface Caller {
  readonly accept: Accepted;
  readonly variables: { readonly on?: boolean };
}

/** What is selected of a record, by how much of it depends on formats and conditions. */
const RECORDS = {
  'fields are skipped and included': '{ id @skip(if: $on) NAME ... @include(if: $on) { x: id } }',
  'a fragment is spread twice': '{ id ...Name ... @include(if: $on) { ...Name } }',
  'a nested list stands beside a condition': '{ id ...Name @include(if: $on) LIST }',
};

const CANDIDATE = {
  type: 'Candidate',
  name: 'name',
  list: 'historyConnection(first: 1) { nodes { text at } }',
};
const PERSON = { type: 'Person', name: 'firstName', list: 'firstName' };

/** The fields of the root that the selections of records are in. */
const FIELDS = [
  { what: 'a forwarded list', root: 'candidates(first: 2) { items RECORD }' },
  { what: 'an all… field', root: 'allCandidates(limit: 3) RECORD' },
  {
    what: 'an all… field that may be streamed',
    root: 'allCandidates(limit: 60) @stream(if: $on) RECORD',
  },
  {
    what: 'a connection',
    root: 'candidatesConnection(first: 2) { nodes RECORD pageInfo { hasNextPage } }',
  },
  {
    what: '_entities',
    root: '_entities(representations: [{ __typename: "Candidate", id: 3 }]) { ... on Candidate RECORD }',
  },
  {
    what: 'an all… field below records',
    root: 'vacancies(first: 5) { items { id allCandidates(limit: 2) RECORD } }',
  },
  { what: 'a record that is looked up in a list', root: 'person(id: 3) RECORD', of: PERSON },
  {
    what: 'an introspection field',
    root: '__type(name: "Candidate") { name kind ... @skip(if: $on) { fields { name } } }',
    isLocal: true,
  },
];

let candidates: GatewayOverFake;
let persons: GatewayOverFake;
beforeAll(async () => {
  [candidates, persons] = await Promise.all([
    startGatewayOverFake(
      { schema: fullService().schema },
      {
        snapshot: fullSdl,
        overrides: { fields: { 'Candidate.history': { identity: 'at' } } },
      },
    ),
    startGatewayOverFake({}, { snapshot: documentedSdl }),
  ]);
});
afterAll(async () => {
  await candidates[Symbol.asyncDispose]();
  await persons[Symbol.asyncDispose]();
});

test.each(FIELDS)(
  'whoever sends $what first, all callers get at the same time what they get alone',
  async ({ root, of = CANDIDATE, isLocal = false }) => {
    const gateway = of === PERSON ? persons : candidates;
    const last = isLocal
      ? undefined
      : of === PERSON
        ? '{ persons { items { id } } }'
        : '{ allOpenings }';
    const at = FIELDS.findIndex((field) => field.root === root);
    for (const [what, selected] of someOf(Object.entries(RECORDS), at)) {
      const record = selected.replaceAll('NAME', of.name).replaceAll('LIST', of.list);
      const body = `{ ${root.replace('RECORD', record)} }`;
      const fragment = body.includes('...Name')
        ? `fragment Name on ${of.type} { named: ${of.name} }`
        : '';
      const isConditional = body.includes('$on');
      const query = `query ${isConditional ? '($on: Boolean!) ' : ''}${body} ${fragment}`;
      const values = isConditional ? [{ on: true }, { on: false }] : [{}];
      const callers = ACCEPTED.flatMap((accept) =>
        values.map((variables): Caller => ({ accept, variables })),
      );
      const answer = ({ accept, variables }: Caller) =>
        joinedAnswer(gateway, { query, variables }, accept);
      const alone: Awaited<ReturnType<typeof answer>>[] = [];
      for (const caller of callers) alone.push(await answer(caller));
      for (const [i, { data }] of alone.entries()) {
        const { variables } = callers[i]!;
        const whole = callers.findIndex((caller) => caller.variables === variables);
        expect(data, query).toEqual(alone[whole]!.data);
      }
      for (const first of callers) {
        const others = callers.filter((caller) => caller !== first);
        const together = await atOnce(
          gateway,
          [first, ...others].map((caller) => () => answer(caller)),
          last,
        );
        expect(together, `${what}: ${query}, first ${JSON.stringify(first)}`).toEqual(
          [first, ...others].map((caller) => alone[callers.indexOf(caller)]),
        );
      }
    }
  },
);

/**
 * Holds the service back until the first caller's request has arrived, and then those of all others.
 *
 * @param last a query of which a request arrives after those of all callers; undefined for callers who need no request
 */
async function atOnce<T>(
  { ask, upstream }: GatewayOverFake,
  [first, ...others]: readonly (() => Promise<T>)[],
  last: string | undefined,
): Promise<T[]> {
  if (last === undefined) return Promise.all([first!, ...others].map((call) => call()));
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, honest));
  const before = upstream.received.length;
  const answers = [first!()];
  await upstream.arrived(before + 1);
  answers.push(...others.map((call) => call()));
  const other = ask(`query Last${before} ${last}`);
  const hasArrived = () =>
    upstream.received.slice(before).some(({ body }) => body.includes(`query Last${before} `));
  for (let sent = before + 2; !hasArrived(); sent += 1) await upstream.arrived(sent);
  gate.resolve();
  await other;
  return Promise.all(answers);
}
