import { createElement as h } from 'react';
import { graphql, useLazyLoadQuery, usePaginationFragment } from 'react-relay';
import { createEnvironment } from '../../../examples/relay/environment.ts';
import { show } from './show.js';

/** Lists below vacancies: those of the first vacancy from their start, those of the second from their end. */
function Vacancies() {
  const { forward, backward } = useLazyLoadQuery(
    graphql`
      query vacanciesPageQuery {
        forward: vacancy(id: "1") {
          ...vacanciesPage_candidates @arguments(first: 2)
        }
        backward: vacancy(id: "2") {
          ...vacanciesPage_candidates @arguments(last: 2)
        }
      }
    `,
    {},
  );
  globalThis.lists = [];
  return [forward, backward].map((vacancy, index) => h(Vacancy, { key: index, index, vacancy }));
}

function Vacancy({ index, vacancy }) {
  const list = usePaginationFragment(
    graphql`
      fragment vacanciesPage_candidates on Vacancy
      @refetchable(queryName: "vacanciesPageCandidatesQuery")
      @argumentDefinitions(
        first: { type: "Int" }
        after: { type: "String" }
        last: { type: "Int" }
        before: { type: "String" }
      ) {
        name
        candidatesConnection(first: $first, after: $after, last: $last, before: $before)
          @connection(key: "vacanciesPage_candidatesConnection") {
          edges {
            node {
              id
              name
            }
          }
        }
      }
    `,
    vacancy,
  );
  globalThis.lists[index] = list;
  const { name, candidatesConnection } = list.data;
  return h(
    'ul',
    {},
    h('b', {}, name),
    candidatesConnection.edges.map(({ node }) => h('li', { key: node.id }, node.name)),
  );
}

const { gateway } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
show(
  createEnvironment(gateway, () => ({})),
  h(Vacancies),
);
