import { buildSubgraphSchema } from '@apollo/subgraph';
import { GraphQLError, parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { PublishedSubgraph } from './composition.ts';
import { serveRecorded, type RecordedServer } from './recorded-server.ts';

/** Another team's subgraph that adds a field to persons, and refers to them from its own list. */
export interface PayrollSubgraph extends RecordedServer, PublishedSubgraph {
  /** Ids whose salary band fails. */
  readonly failing: Set<string>;
  /** Ids that this subgraph does not know. */
  readonly unknown: Set<string>;
}

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
  const failing = new Set<string>();
  const unknown = new Set<string>();
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
          __resolveReference: ({ id }: { id: string }) => (unknown.has(id) ? null : { id }),
          salaryBand: ({ id }: { id: string }) => {
            if (failing.has(id)) {
              throw new GraphQLError('No band.', { extensions: { code: 'PAYROLL_SECRET' } });
            }
            return salaryBandOf(id);
          },
        },
      },
    },
  ]);
  const yoga = createYoga({ schema, logging: false });
  const server = await serveRecorded((request) => yoga.fetch(request));
  return { ...server, name: 'payroll', sdl, failing, unknown };
}

function payslipsOf(ids: readonly string[]) {
  return ids.map((id, index) => ({ person: { id }, amount: 1000 + index }));
}
