import { createElement as h, Suspense } from 'react';
import { createEnvironment } from '../../../examples/relay/environment.ts';
import { usePeople, usePerson } from '../../../examples/relay/people.ts';
import { show } from './show.js';

/** The list of examples/relay, from the end that the page's address names. */
function People({ variables }) {
  const list = usePeople(variables);
  globalThis.lists = [list];
  return list.data.personsConnection.edges.map(({ node }) =>
    h(Suspense, { key: node.id, fallback: null }, h(Person, { person: node })),
  );
}

function Person({ person }) {
  const [data, refetch] = usePerson(person);
  const onClick = () => refetch({}, { fetchPolicy: 'network-only' });
  return h('li', { onClick }, data.firstName);
}

const { gateway, credential, size } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
const environment = createEnvironment(gateway, () => credential);
show(environment, h(People, { variables: size }));
