import { readFileSync } from 'node:fs';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';
import { createYoga } from 'graphql-yoga';

export const payrollSdl = readFileSync(new URL('payroll.graphql', import.meta.url), 'utf8');

const BANDS = ['A', 'B', 'C'] as const;

/** The second subgraph: it adds a field to the persons of the first one, and refers to them. */
export const payroll = createYoga({
  schema: buildSubgraphSchema([
    {
      typeDefs: parse(payrollSdl),
      resolvers: {
        Query: {
          payslips: (_root: unknown, { of }: { of: readonly string[] }) =>
            of.map((id) => ({ person: { id }, amount: 4_000 })),
        },
        Person: {
          __resolveReference: ({ id }: { id: string }) => ({ id }),
          salaryBand: ({ id }: { id: string }) =>
            BANDS[id.charCodeAt(id.length - 1) % BANDS.length],
        },
      },
    },
  ]),
  logging: false,
});
