import type { Plugin } from 'graphql-yoga';

const PATHS = ['/graphql', '/graphql/', '/health', '/ready'];

/** Nothing is served elsewhere: Yoga by itself also takes whatever address ends like one of these. */
export const knownPaths: Plugin = {
  onRequest({ url, endResponse, fetchAPI }) {
    if (PATHS.includes(url.pathname)) return;
    endResponse(new fetchAPI.Response(null, { status: 404 }));
  },
};
