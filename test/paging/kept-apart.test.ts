import { expect, test } from 'vitest';
import { after, honest } from '../service/replies.ts';
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
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(honest, honest, after(gate.promise, honest), honest);
  const total = '{ teamsConnection { totalCount } }';
  const before = gateway.ask<Teams>(total);
  await service.arrived(3);
  await gateway.ask('mutation { addTeam { id } }');
  gate.resolve();
  await before;
  expect((await gateway.ask<Teams>(total)).data.teamsConnection.totalCount).toBe(121);
});

test('a drain that starts after a mutation joins none from before it', async () => {
  await using gateway = await startTeams({ teams: 120 });
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, honest), honest, honest);
  const drain = () => gateway.ask<Teams>('{ allTeams { number } }');
  const before = drain();
  await service.arrived(1);
  await gateway.ask('mutation { addTeam { id } }');
  // It reads its own pages while the walk from before the mutation still waits for its first one.
  expect((await drain()).data.allTeams).toHaveLength(121);
  gate.resolve();
  await before;
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
  expect(gateway.service.received[0]!.body).toContain('two: addMember');
});
