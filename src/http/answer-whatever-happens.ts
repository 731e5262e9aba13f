import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendNodeResponse } from '@whatwg-node/server';
import type { GraphQLError } from 'graphql';

/** What answers requests, and throws what nobody foresaw. */
interface Answering {
  fetch(request: Request): Response | Promise<Response>;
  handleNodeRequestAndResponse(
    request: IncomingMessage,
    response: ServerResponse,
    context: object,
  ): Response | Promise<Response>;
}
