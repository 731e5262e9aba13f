import { afterAll, beforeAll, expect, test } from 'vitest';
import { composed } from '../support/supergraph/composition.ts';
import { salaryBandOf } from '../support/supergraph/payroll-subgraph.ts';
import { ROUTER_KEY } from '../support/supergraph/recruiting-subgraph.ts';
import { startRouter, type Router } from '../support/supergraph/router.ts';
import { startSubgraphs, type Subgraphs } from '../support/supergraph/supergraph.ts';

let subgraphs: Subgraphs;
let router: Router;

beforeAll(async () => {
  subgraphs = await startSubgraphs();
  const { recruiting, payroll, reviews } = subgraphs;
  router = await startRouter({
    supergraph: composed([recruiting, payroll, reviews]),
    env: { RECRUITING_KEY: ROUTER_KEY },
  });
});
afterAll(async () => {
  await router[Symbol.asyncDispose]();
  await subgraphs[Symbol.asyncDispose]();
});

test('Hive Gateway, configured as documented, answers a query across subgraphs', async () => {
  const [first, second] = subgraphs.recruiting.persons;
  expect(
    await router.ask(
      `query ($of: [ID!]!) {
        allPersons(limit: 1) { firstName salaryBand }
        a: payslips(of: $of) { person { firstName } }
        b: payslips(of: $of) { person { name: firstName } }
      }`,
      { of: [second!.id] },
    ),
  ).toEqual({
    data: {
      allPersons: [{ firstName: first!.firstName, salaryBand: salaryBandOf(first!.id) }],
      a: [{ person: { firstName: second!.firstName } }],
      b: [{ person: { name: second!.firstName } }],
    },
  });
});

test('Hive Gateway sends its key to this subgraph only, without the credentials of the caller', async () => {
  subgraphs.forget();
  await router.ask(
    '{ payrollRun(size: 1) { person { firstName salaryBand } } }',
    {},
    { authorization: 'Bearer of-the-caller', cookie: 'session=1', 'x-api-key': 'of-the-caller' },
  );
  const [ours] = subgraphs.recruiting.received;
  expect(ours!.headers).toMatchObject({
    'content-type': 'application/json',
    'x-api-key': ROUTER_KEY,
  });
  expect(ours!.headers).not.toHaveProperty('authorization');
  expect(ours!.headers).not.toHaveProperty('cookie');
  expect(subgraphs.payroll.received[0]!.headers).not.toHaveProperty('x-api-key');
});

test('Hive Gateway sends the name and the version of the client to this subgraph', async () => {
  subgraphs.forget();
  const query = '{ allPersons(limit: 1) { id } }';
  const names = {
    'graphql-client-name': 'portal',
    'graphql-client-version': '1.2',
    'apollographql-client-name': 'app',
    'apollographql-client-version': '3',
  };
  await router.ask(query, {}, names);
  await router.ask(query);
  const [named, unnamed] = subgraphs.recruiting.received;
  expect(named!.headers).toMatchObject(names);
  for (const name of Object.keys(names)) expect(unnamed!.headers).not.toHaveProperty(name);
});
