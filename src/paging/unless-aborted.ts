/** Waits for what goes on, whoever leaves. @throws the reason of the signal, as soon as it is aborted */
export async function unlessAborted<T>(awaited: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason as Error);
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([awaited, left]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
