import { createElement as h } from 'react';
import { createEnvironment } from '../../../examples/relay/environment.ts';
import { useCandidates, useVacancies } from '../../../examples/relay/vacancies.ts';
import { show } from './show.js';

/** The vacancies of examples/relay, with their candidates from the end that the page's address names. */
function Vacancies({ variables }) {
  const vacancies = useVacancies(variables);
  globalThis.lists = [];
  return vacancies.map((vacancy, index) => h(Vacancy, { key: vacancy.id, index, vacancy }));
}

function Vacancy({ index, vacancy }) {
  const list = useCandidates(vacancy);
  globalThis.lists[index] = list;
  return h(
    'ul',
    {},
    h('b', {}, vacancy.title),
    list.data.candidatesConnection.edges.map(({ node }) =>
      h('li', { key: node.id }, `${vacancy.id} ${node.id} ${node.person.firstName}`),
    ),
  );
}

const { gateway, credential, size } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
show(
  createEnvironment(gateway, () => credential),
  h(Vacancies, { variables: size }),
);
