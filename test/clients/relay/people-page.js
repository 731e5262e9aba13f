import { createElement as h } from 'react';
import { createEnvironment } from '../../../examples/relay/environment.ts';
import { usePeople } from '../../../examples/relay/people.ts';
import { show } from './show.js';

/** The list of examples/relay, from the end that the page's address names. */
function People({ variables }) {
  const list = usePeople(variables);
  globalThis.lists = [list];
  return list.data.personsConnection.edges.map(({ node }) =>
    h('li', { key: node.id }, node.firstName),
  );
}

const { gateway, credential, size } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
show(
  createEnvironment(gateway, () => credential),
  h(People, { variables: size }),
);
