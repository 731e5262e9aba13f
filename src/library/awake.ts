/**
 * The waits of the gateway let an idle process end, but not one that waits for a token, or that has yet to save a pair.
 */
export async function awake<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 2 ** 30);
  return work().finally(() => clearInterval(timer));
}
