import type { Plugin } from 'graphql-yoga';
import { codedError } from '../errors.ts';
import type { ServerContext } from './front-door/remote-address.ts';
import { checkAddress, checkBody, readJson } from './request-body.ts';

/**
 * Takes operations as JSON, or in the address of a GET. Never as a form: the page of any site can make a
 * browser send one here, mutations too, without the question that CORS asks before JSON.
 */
export function requestFormat(maxBytes: number): Plugin<object, ServerContext> {
  return {
    onRequestParse({ request, requestParser, setRequestParser, serverContext }) {
      const { method, headers, url } = request;
      if (method === 'POST') {
        checkBody(headers, maxBytes);
        setRequestParser(({ body }) => readJson(serverContext.req ?? body, maxBytes));
      }
      if (method !== 'GET' || !requestParser) return;
      checkAddress(url, maxBytes);
      setRequestParser(async (read) => {
        try {
          return await requestParser(read);
        } catch (error) {
          if (!(error instanceof SyntaxError)) throw error;
          throw codedError(
            'BAD_USER_INPUT',
            'The variables and the extensions in the address must be JSON.',
            { extensions: { http: { status: 400 } } },
          );
        }
      });
    },
  };
}
