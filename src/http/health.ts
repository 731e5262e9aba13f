import type { Plugin } from 'graphql-yoga';

/** Says that the process lives. By the whole path: Yoga's own takes every address that ends like it. */
export const health: Plugin = {
  onRequest({ url, endResponse, fetchAPI }) {
    if (url.pathname === '/health') endResponse(new fetchAPI.Response(null, { status: 200 }));
  },
};

/** For Yoga's own, which cannot be left out: no address ends so. */
export const NO_ADDRESS = ' ';
