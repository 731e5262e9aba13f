import type { Plugin } from 'graphql-yoga';

const PATHS = ['/graphql', '/graphql/', '/health', '/ready'];

export function isKnownPath(path: string): boolean {
  return PATHS.includes(path);
}

/** Nothing is served elsewhere: Yoga by itself also takes whatever address ends like one of these. */
export const knownPaths: Plugin = {
  onRequest({ url, endResponse, fetchAPI }) {
    if (isKnownPath(url.pathname)) return;
    const headers = { 'content-type': 'text/plain; charset=utf-8' };
    endResponse(
      new fetchAPI.Response('Nothing is served here. The path of GraphQL is /graphql.\n', {
        status: 404,
        headers,
      }),
    );
  },
};
