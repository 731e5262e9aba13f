/** A failure that says by itself what is wrong, and whose message holds nothing secret. */
export class PlainError extends Error {
  override name = 'PlainError';
}

/** Why something failed, for people. Foreign messages are left out: they may hold addresses or headers. */
export function reasonOf(error: unknown): string {
  if (error instanceof PlainError) return error.message;
  const { code, name } = (error ?? {}) as { code?: unknown; name?: string };
  // The code of a DOMException is a number that tells nobody anything.
  return typeof code === 'string' ? code : (name ?? 'unknown error');
}
