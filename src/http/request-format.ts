import type { Plugin } from 'graphql-yoga';
import { codedError } from '../errors.ts';

/**
 * Takes operations as JSON, or in the address of a GET. Never as a form: the page of any site can make a
 * browser send one here, mutations too, without the question that CORS asks before JSON.
 */
export const requestFormat: Plugin = {
  onRequestParse({ request, requestParser, setRequestParser }) {
    const { method, headers } = request;
    if (method === 'POST' && !(requestParser && isJson(headers.get('content-type')))) {
      throw refused(415, 'Send the operation as JSON, with "content-type: application/json".');
    }
    if (method !== 'GET' || !requestParser) return;
    setRequestParser(async (read) => {
      try {
        return await requestParser(read);
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        throw refused(400, 'The variables and the extensions in the address must be JSON.');
      }
    });
  },
};

function isJson(contentType: string | null): boolean {
  return /^application\/(graphql\+)?json\s*([;,]|$)/.test(contentType ?? '');
}

function refused(status: number, message: string) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status } } });
}
