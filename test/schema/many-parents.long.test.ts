import { expect, test } from 'vitest';
import { after, honest } from '../support/imitations/scripted.ts';
import { startTeams } from '../support/gateway/teams.ts';

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
