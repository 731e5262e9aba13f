import { expect, test } from 'vitest';
import { after, honest, type Reply } from '../support/imitations/scripted.ts';
import { startTeams } from '../support/gateway/teams.ts';

test.each(['allMembers { id }', 'membersConnection { nodes { id } }'])(
  'other callers are answered while the %s of thousands of parents are built',
  async (list) => {
    const teams = 3_000;
    await using gateway = await startTeams({ teams });
    const lastPage = Promise.withResolvers<void>();
    const watched: Reply = async (response, received, sandbox) => {
      response.once('finish', () => {
        const start = /"_rs_after":"(\d+)"/.exec(received.body)?.[1];
        if (Number(start) >= teams - 50) lastPage.resolve();
      });
      await honest(response, received, sandbox);
    };
    gateway.upstream.answer(watched);
    const order: string[] = [];
    const all = gateway
      .ask<{ allTeams: object[] }>(`{ allTeams { ${list} } }`)
      .finally(() => order.push('all'));
    await Promise.race([lastPage.promise, all]);
    await gateway.ask('{ team(id: "1") { id } }');
    order.push('other');
    expect((await all).data.allTeams).toHaveLength(teams);
    expect(order).toEqual(['other', 'all']);
  },
);

test.each(['allMembers(limit: 20) { id }', 'membersConnection(first: 20) { nodes { id } }'])(
  'further pages of %s below many parents leave capacity for other callers',
  async (list) => {
    await using gateway = await startTeams({ teams: 40, members: 8 });
    const { upstream } = gateway;
    const gate = Promise.withResolvers<void>();
    // The parents, and the first pages of all their lists.
    upstream.answer(honest, honest, after(gate.promise, honest));
    const all = gateway.ask<{ teams: { items: object[] } }>(`{ teams { items { ${list} } } }`);
    await upstream.arrived(2 + 8);
    const other = gateway.ask('{ team(id: "1") { number } }');
    await upstream.arrived(2 + 8 + 1);
    expect(upstream.received[10]!.body).toContain('number');
    gate.resolve();
    expect((await other).data).toEqual({ team: { number: 1 } });
    expect((await all).data.teams.items).toHaveLength(40);
  },
);
