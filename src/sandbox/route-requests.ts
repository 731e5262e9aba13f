import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, send } from './answer.ts';
import type { Answer } from './answer.ts';
import type { RouteName, Stats } from './count-requests.ts';

export interface Route {
  name: RouteName;
  method: 'GET' | 'POST';
  /** `gone` is aborted when the client has left, and once the answer is sent. */
  answer: (request: IncomingMessage, gone: AbortSignal) => MaybeAnswer | Promise<MaybeAnswer>;
}

/** Without an answer the connection is cut. */
type MaybeAnswer = Answer | undefined;

export function routeRequests(
  routes: ReadonlyMap<string, Route>,
  stats: Stats,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const route = routes.get(pathOf(request));
    stats.requests[route?.name ?? 'unknown'] += 1;
    void respond(route, request, response);
  };
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] ?? '';
}

async function respond(
  route: Route | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const answer = await answerOf(route, request, gone.signal);
    if (gone.signal.aborted) return;
    if (answer === undefined) request.socket.destroy();
    else send(response, answer);
  } catch (error) {
    // With the client gone there is nobody to tell, and an interrupted wait or upload is no failure.
    if (gone.signal.aborted || request.socket.destroyed) return;
    send(response, problem(500, error instanceof Error ? error.message : String(error)));
  }
}

function answerOf(
  route: Route | undefined,
  request: IncomingMessage,
  gone: AbortSignal,
): MaybeAnswer | Promise<MaybeAnswer> {
  if (route === undefined) return problem(404, 'There is nothing at this address.');
  if (request.method !== route.method) {
    return {
      ...problem(405, `Only ${route.method} is answered here.`),
      headers: { allow: route.method },
    };
  }
  return route.answer(request, gone);
}
