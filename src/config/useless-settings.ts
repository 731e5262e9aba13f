interface Settings {
  readonly graphiql: boolean;
  readonly introspection: boolean;
  readonly trustedDocumentsOnly: boolean;
}

/** Warnings for what is switched on, and can do little beside what else is set. */
export function uselessSettings(settings: Settings): string[] {
  const { graphiql, introspection, trustedDocumentsOnly } = settings;
  if (!graphiql) return [];
  if (trustedDocumentsOnly) {
    return ['GraphiQL is on and only trusted documents are taken: it can run nothing.'];
  }
  return introspection
    ? []
    : ['GraphiQL is on and introspection is off: it will show no documentation.'];
}
