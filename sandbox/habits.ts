/** Behaviour of services of this kind that the published interface does not mention. All of it is off by default. */
export interface Habits {
  /** The largest cost of an operation (`operationCost`); undefined: no limit. */
  readonly maxCost?: number | undefined;
  /** How an operation that costs more is refused: by an error with status 200, or by the status of a proxy. */
  readonly tooCostly?: 'error' | 413 | 502 | 504;
  /** Whether introspection is answered always, or only in good faith (graphql-java's word for it). */
  readonly introspection?: 'open' | 'strict';
  /** Whether a request needs a `User-Agent` of the form `name/version (contact)`. */
  readonly requireUserAgent?: boolean;
  /** The status of the refusal of a refresh before the access token has expired; the refresh token stays valid. */
  readonly refuseEarlyRefresh?: 400 | 403 | undefined;
  /** Whether the token link is a page for people. */
  readonly linkPage?: boolean;
  /** Whether each answer of /graphql has its cost as an extension. */
  readonly costExtension?: boolean;
  /** Whether each answer has an `X-Request-Id`. */
  readonly requestIds?: boolean;
}

/** The values of `allHabits`; others can be set beside it. */
export const ALL_HABITS = {
  // A page of 50 with a handful of fields; more fields need smaller pages.
  maxCost: 500,
  tooCostly: 'error',
  introspection: 'strict',
  requireUserAgent: true,
  refuseEarlyRefresh: 400,
  linkPage: true,
  costExtension: true,
  requestIds: true,
} as const satisfies Habits;
