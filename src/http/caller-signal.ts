/**
 * A signal of Node's own that follows the one of the request.
 *
 * The server library's signal is a proxy: once `AbortSignal.any` has been made from it, an abort reaches
 * that one alone, and whoever else listens never hears of it.
 */
export function callerSignal({ signal }: Request): AbortSignal {
  const caller = new AbortController();
  const leave = () => caller.abort(new DOMException('The caller left.', 'AbortError'));
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  return caller.signal;
}
