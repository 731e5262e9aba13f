import { expect, test } from 'vitest';
import { after, honest } from '../support/imitations/scripted.ts';
import { startTeams } from '../support/gateway/teams.ts';

interface Teams {
  allTeams: { number: number }[];
  teamsConnection: { totalCount: number };
}

test.each([
  ['(lead: null)', ''],
  ['(where: { lead: null })', '(where: {})'],
])('a null filter %s and an omitted one %s are two lists', async (filtered, all) => {
  await using gateway = await startTeams({ teams: 120 });
  for (const list of [
    (args: string) => `allTeams${args} { number }`,
    (args: string) => `teamsConnection${args} { totalCount }`,
  ]) {
    const [few, many] = await Promise.all([
      gateway.ask<Teams>(`{ ${list(filtered)} }`),
      gateway.ask<Teams>(`{ ${list(all)} }`),
    ]);
    const count = ({ allTeams, teamsConnection }: Teams) =>
      teamsConnection ? teamsConnection.totalCount : allTeams.length;
    expect([count(few.data), count(many.data)]).toEqual([60, 120]);
  }
});

test('a cursor is valid for both: Relay sends an unused filter as null', async () => {
  await using gateway = await startTeams({ teams: 120 });
  const query = `query ($lead: String, $after: String) {
    teamsConnection(lead: $lead, first: 3, after: $after) { pageInfo { endCursor } }
  }`;
  interface Page {
    teamsConnection: { pageInfo: { endCursor: string } };
  }
  const { data } = await gateway.ask<Page>(query, { lead: null });
  const { endCursor } = data.teamsConnection.pageInfo;
  expect((await gateway.ask(query, { after: endCursor })).errors).toBeUndefined();
});

test('a total that was counted before a mutation is not returned after it', async () => {
  await using gateway = await startTeams({ teams: 120 });
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(honest, honest, after(gate.promise, honest), honest);
  const total = '{ teamsConnection { totalCount } }';
  const before = gateway.ask<Teams>(total);
  await upstream.arrived(3);
  await gateway.ask('mutation { addTeam { id } }');
  gate.resolve();
  await before;
  expect((await gateway.ask<Teams>(total)).data.teamsConnection.totalCount).toBe(121);
});

test('lists below several mutations of one operation are read after the last mutation', async () => {
  await using gateway = await startTeams({ teams: 1, members: 8 });
  const members = '{ membersConnection(first: 20) { nodes { id } } }';
  const { data } = await gateway.ask(
    `mutation { one: addMember(team: "0") ${members} two: addMember(team: "0") ${members} }`,
  );
  const { one: first, two: second } = data as Record<
    string,
    { membersConnection: { nodes: object[] } }
  >;
  expect([first, second].map((each) => each!.membersConnection.nodes.length)).toEqual([10, 10]);
  expect(gateway.upstream.received[0]!.body).toContain('two: addMember');
});

test.each([0, 30, 120, 395])(
  'every drain of a list with an id twice in one page (from %i on) returns all its records',
  async (offset) => {
    await using gateway = await startTeams({
      teams: 400,
      change: (teams) => {
        teams[offset + 2]!.id = teams[offset]!.id;
      },
    });
    const numbers = Array.from({ length: 400 }, (_, number) => number);
    for (let time = 0; time < 3; time += 1) {
      const { data } = await gateway.ask<Teams>('{ allTeams { number } }');
      expect(data.allTeams.map(({ number }) => number)).toEqual(numbers);
    }
    const { data } = await gateway.ask<Teams>('{ teamsConnection { totalCount } }');
    expect(data.teamsConnection.totalCount).toBe(400);
  },
);

test('ids that begin to repeat after the first drain drop no record', async () => {
  await using gateway = await startTeams({ teams: 400 });
  const numbers = Array.from({ length: 400 }, (_, number) => number);
  const drained = async () =>
    (await gateway.ask<Teams>('{ allTeams { number } }')).data.allTeams.map(({ number }) => number);
  for (const offset of [0, 130, 250]) {
    expect(await drained()).toEqual(numbers);
    const { id } = gateway.teams[offset + 1]!;
    gateway.teams[offset + 1]!.id = gateway.teams[offset]!.id;
    expect(await drained()).toEqual(numbers);
    gateway.teams[offset + 1]!.id = id;
    expect(await drained()).toEqual(numbers);
  }
});
