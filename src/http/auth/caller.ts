/** Who asks. */
export interface Caller {
  /**
   * `key:` and the name of an API key, or `sub:` and the subject of a token: so neither can pass for the other. The
   * subject may be a person, and is not for logs.
   */
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
}

/** What is taken. A header whose part is missing here is not looked at. */
export interface Credentials {
  readonly apiKeyOwner?: ((key: string) => Caller | undefined) | undefined;
  readonly bearerTokenOwner?: ((token: string) => Promise<Caller | undefined>) | undefined;
}

/** Who a request comes from. */
export type Identity =
  | { readonly kind: 'known'; readonly caller: Caller }
  | { readonly kind: 'nobody' }
  /** By the header that is wrong. */
  | { readonly kind: 'refused'; readonly header: 'x-api-key' | 'authorization' };
