/** Who asks. */
export interface Caller {
  /**
   * `key:` and the name of an API key, or `sub:` and the subject of a token: so neither can pass for the other. The
   * subject may be a person, and is not for logs.
   */
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
}
