export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly path: string }
  /** The URL holds a password. */
  | { readonly kind: 'postgres'; readonly url: string };

/** Returns undefined for a kind of store that is not supported. */
export function readStoreAddress(text: string): StoreAddress | undefined {
  const path = SQLITE.exec(text)?.groups?.['path'];
  if (path !== undefined) return { kind: 'sqlite', path };
  return POSTGRES.test(text) && URL.canParse(text) ? { kind: 'postgres', url: text } : undefined;
}

const SQLITE = /^sqlite:(?<path>.+)$/;
const POSTGRES = /^postgres(ql)?:\/\/[^/]+\/[^/?]/i;
