import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { PublishedSubgraph } from './composition.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';

/** Another team's subgraph that adds a field to persons, and refers to them from its own list. */
export type PayrollSubgraph = RecordedServer & PublishedSubgraph;

export function payrollSdl(person = 'Person'): string {
  return /* GraphQL */ `
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])

    type ${person} @key(fields: "id") {
      id: ID!
      salaryBand: String
    }
    type Payslip {
      person: ${person}
      amount: Int!
    }
    type Query {
      "One for each of so many persons."
      payrollRun(size: Int!): [Payslip!]!
      payslips(of: [ID!]!): [Payslip!]!
    }
  `;
}

/** The salary band of each person. */
export function salaryBandOf(id: string): string {
  return `band of ${id}`;
}

export async function startPayroll(
  personIds: readonly string[],
  person = 'Person',
): Promise<PayrollSubgraph> {
  const sdl = payrollSdl(person);
  const schema = buildSubgraphSchema([
    {
      typeDefs: parse(sdl),
      resolvers: {
        Query: {
          payrollRun: (_, { size }: { size: number }) => payslipsOf(personIds.slice(0, size)),
          payslips: (_, { of }: { of: string[] }) => payslipsOf(of),
        },
        [person]: {
          __resolveReference: ({ id }: { id: string }) => ({ id }),
          salaryBand: ({ id }: { id: string }) => salaryBandOf(id),
        },
      },
    },
  ]);
  const yoga = createYoga({ schema, logging: false });
  const server = await serveRecorded((request) => yoga.fetch(request));
  return { ...server, name: 'payroll', sdl };
}

function payslipsOf(ids: readonly string[]) {
  return ids.map((id, index) => ({ person: { id }, amount: 1000 + index }));
}
