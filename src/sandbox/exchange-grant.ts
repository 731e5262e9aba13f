import { problem } from './answer.ts';
import type { Answer } from './answer.ts';
import type { Stats } from './count-requests.ts';
import { contentType, readBody } from './read-body.ts';
import type { Route } from './route-requests.ts';
import type { TokenOffice } from './token-office.ts';

/** POST /oauth/token */
export function oauthTokenEndpoint(tokens: TokenOffice, stats: Stats): Route['answer'] {
  return async (request) => {
    const text = await readBody(request, maxBytes);
    if (text === undefined) return problem(413, `The body is larger than ${maxBytes} bytes.`);

    // Only a form has fields: any other body is one without a grant_type.
    const form = new URLSearchParams(contentType(request) === formType ? text : '');
    if (form.get('grant_type') !== 'refresh_token') return unsupportedGrantType;

    const set = tokens.exchange(form.get('refresh_token') ?? '');
    if (set === undefined) return invalidGrant;
    stats.refreshes += 1;
    return { status: 200, body: set };
  };
}

const maxBytes = 16 * 1024;
const formType = 'application/x-www-form-urlencoded';

const unsupportedGrantType: Answer = {
  status: 400,
  body: {
    error: 'unsupported_grant_type',
    error_description: 'The authorization grant type is not supported by the authorization server.',
  },
};

const invalidGrant: Answer = {
  status: 400,
  body: {
    error: 'invalid_grant',
    error_description: 'Refresh token is invalid, expired or revoked.',
  },
};
