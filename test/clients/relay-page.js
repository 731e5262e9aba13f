import { createElement as h, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { RelayEnvironmentProvider } from 'react-relay';
import { createEnvironment } from '../../examples/relay/environment.ts';
import { usePeople } from '../../examples/relay/people.ts';
import { useCandidates, useVacancies } from '../../examples/relay/vacancies.ts';

// An application that shows lists of examples/relay. Its tests load more of them.
globalThis.lists = [];

function People({ variables }) {
  const list = usePeople(variables);
  globalThis.lists = [list];
  return list.data.personsConnection.edges.map(({ node }) => h('li', { key: node.id }, node.id));
}

function Vacancies({ variables }) {
  return useVacancies(variables).map((vacancy, index) =>
    h(Vacancy, { key: vacancy.id, index, vacancy }),
  );
}

function Vacancy({ index, vacancy }) {
  const list = useCandidates(vacancy);
  globalThis.lists[index] = list;
  return list.data.candidatesConnection.edges.map(({ node }) =>
    h('li', { key: node.id }, `${vacancy.id} ${node.id}`),
  );
}

const { gateway, credential, shows, variables } = JSON.parse(
  decodeURIComponent(location.hash.slice(1)),
);
const environment = createEnvironment(gateway, () => credential);
const lists = h({ People, Vacancies }[shows], { variables });
createRoot(document.body.appendChild(document.createElement('main'))).render(
  h(RelayEnvironmentProvider, { environment }, h(Suspense, { fallback: null }, lists)),
);
