/** Which mutations callers may use: none, all, or these fields of the upstream. */
export type AllowedMutations = 'off' | 'all' | readonly string[];
