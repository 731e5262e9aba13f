import { expect, test } from 'vitest';
import { compose, type PublishedSubgraph } from '../support/composition.ts';
import { payrollSdl } from '../support/payroll-subgraph.ts';
import { standInSdl as recruitingSdl } from '../support/recruiting-stand-in.ts';
import { reviewsSdl } from '../support/reviews-subgraph.ts';

test('the subgraph composes with others that share PageInfo, extend Person and refer to it', () => {
  const { errors, publicSdl } = composeAll({
    recruiting: recruitingSdl(),
    payroll: payrollSdl(),
    reviews: reviewsSdl(),
  });
  expect(errors).toBeUndefined();
  expect(publicSdl).toMatch(/type Person \{[^}]*salaryBand: String[^}]*firstName: String/);
});

test('it composes alone', () => {
  expect(composeAll({ recruiting: recruitingSdl() }).errors).toBeUndefined();
});

test('what is for the router alone does not reach the clients of the supergraph', () => {
  const { publicSdl } = composeAll({ recruiting: recruitingSdl(), payroll: payrollSdl() });
  expect(publicSdl).not.toMatch(/_entities|_service|_Any|_Entity/);
});

test('a PageInfo with more fields elsewhere composes only with SCHEMA_PREFIX', () => {
  const without = composeAll({
    recruiting: recruitingSdl(),
    reviews: reviewsSdl({ pageInfo: 'totalPages: Int' }),
  });
  expect(without.errors?.map(String).join()).toContain('"PageInfo.totalPages"');

  const prefixed = composeAll({
    recruiting: recruitingSdl('Recruiting'),
    reviews: reviewsSdl({ person: 'RecruitingPerson', pageInfo: 'totalPages: Int' }),
  });
  expect(prefixed.errors).toBeUndefined();
  expect(prefixed.publicSdl).toContain('type RecruitingPageInfo');
});

test('a root field of the same name elsewhere composes only with SCHEMA_PREFIX', () => {
  const other = 'type Query { allPersons: Int }';
  const { errors } = composeAll({ recruiting: recruitingSdl(), other });
  expect(errors?.map(String).join()).toContain('"Query.allPersons"');
  expect(composeAll({ recruiting: recruitingSdl('Recruiting'), other }).errors).toBeUndefined();
});

test('an id that is an Int elsewhere does not compose, and the error says so', () => {
  const { errors } = composeAll({
    recruiting: recruitingSdl(),
    payroll: payrollSdl().replace('id: ID!', 'id: Int!'),
  });
  expect(errors?.map(({ extensions }) => extensions['code'])).toEqual(['FIELD_TYPE_MISMATCH']);
});

function composeAll(sdls: Record<string, string>) {
  return compose(
    Object.entries(sdls).map(([name, sdl]): PublishedSubgraph => ({
      name,
      sdl,
      url: `http://${name}.test/graphql`,
    })),
  );
}
