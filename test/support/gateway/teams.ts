import { makeExecutableSchema, type PageArgs, pageOf } from '../../service/lists.ts';
import type { TestGatewayOptions } from './gateway.ts';
import { startGatewayOverService } from './over-service.ts';

const TEAMS_SDL = `
  type Query {
    "Without \`lead\` all teams; with null those that have none."
    teams(first: Int, after: String, lead: String, where: TeamFilter): TeamPage!
    team(id: ID!): Team
  }
  type Mutation { addTeam: Team addMember(team: ID!): Team }
  input TeamFilter { lead: String }
  type Team { id: ID number: Int! members(first: Int, after: String): MemberPage! }
  type Member { id: ID! }
  type TeamPage { items: [Team!]! total: Int pageInfo: PageInfo! }
  type MemberPage { items: [Member!]! total: Int pageInfo: PageInfo! }
  type PageInfo { first: Int! hasNextPage: Boolean! endCursor: String }
`;

interface Team {
  readonly id: string;
  readonly number: number;
  readonly lead: string | null;
  readonly members: { readonly id: string }[];
}

interface Filter {
  lead?: string | null;
}

const MEMBERS_OF_A_PAGE = 5;

/**
 * A gateway over teams with members, in pages that name positions; every second team has a lead.
 *
 * @param options `total` is the count that the pages of teams report. Default: the right one
 */
export function startTeams(
  options: { teams: number; members?: number; total?: (() => unknown) | undefined },
  gateway: TestGatewayOptions = {},
) {
  const teams = Array.from({ length: options.teams }, (_, number) =>
    newTeam(number, options.members ?? 2),
  );
  const resolvers = {
    Query: {
      teams: (_: unknown, { where, ...args }: PageArgs & Filter & { where?: Filter | null }) => {
        const filter = [args, where ?? {}].find((each) => 'lead' in each);
        const found = filter ? teams.filter(({ lead }) => lead === filter.lead) : teams;
        return { ...pageOf(found, args), ...(options.total && { total: options.total }) };
      },
      team: (_: unknown, { id }: { id: string }) => teams.find((team) => team.id === id) ?? null,
    },
    Mutation: {
      addTeam: () => teams[teams.push(newTeam(teams.length, 2)) - 1],
      addMember: (_: unknown, { team: id }: { team: string }) => {
        const team = teams.find((each) => each.id === id)!;
        team.members.unshift({ id: `${id}-new-${team.members.length}` });
        return team;
      },
    },
    Team: {
      members: ({ members }: Team, args: PageArgs) => pageOf(members, args, MEMBERS_OF_A_PAGE),
    },
  };
  return startGatewayOverService(
    { schema: makeExecutableSchema(TEAMS_SDL, resolvers) },
    { snapshot: TEAMS_SDL, ...gateway, config: { mutations: 'all', ...gateway.config } },
  );
}

function newTeam(number: number, members: number): Team {
  return {
    id: String(number),
    number,
    lead: number % 2 === 0 ? null : 'Ada',
    members: Array.from({ length: members }, (_, at) => ({ id: `${number}-${at}` })),
  };
}
