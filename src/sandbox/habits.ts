/** What services of this kind do, and the published interface does not mention. Each is off unless it is switched on. */
export interface Habits {
  /** Refuses an operation that costs more: see operation-cost.ts. */
  readonly maxCost?: number | undefined;
  /** How it does so: with an error in an answer with status 200, or with this status, as a proxy before it would. */
  readonly tooCostly?: 'error' | 413 | 502 | 504;
  /** Whether introspection is answered always, only in good faith (graphql-java's word for it), or never. */
  readonly introspection?: 'open' | 'strict' | 'closed';
  /** Whose words errors of validation have. */
  readonly wording?: Wording;
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

export type Wording = 'graphql-js' | 'graphql-java' | 'hot-chocolate';

/** What applies for all habits that nothing else was said about. */
export const ALL_HABITS = {
  // A page of 50 with a handful of fields; more fields need smaller pages.
  maxCost: 500,
  tooCostly: 'error',
  introspection: 'strict',
  wording: 'graphql-java',
  requireUserAgent: true,
  refuseEarlyRefresh: 400,
  linkPage: true,
  costExtension: true,
  requestIds: true,
} as const satisfies Habits;
