import { createElement as h, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { RelayEnvironmentProvider } from 'react-relay';

/** Shows a component that uses Relay. */
export function show(environment, component) {
  const root = document.body.appendChild(document.createElement('main'));
  createRoot(root).render(
    h(RelayEnvironmentProvider, { environment }, h(Suspense, { fallback: null }, component)),
  );
}
