import type { Exchange, Reply } from '../exchange/exchange.ts';
import type { Credentials, Identity } from './caller.ts';

type Stranger = Exclude<Identity, { kind: 'known' }>;

/**
 * The 401 for a stranger, with an error as GraphQL has it. Written here, since Yoga would choose status and format by
 * what the caller accepts. It never says what exactly is wrong with a credential.
 */
export function unauthenticated(
  stranger: Stranger,
  exchange: Exchange,
  credentials: Credentials,
): Reply {
  const message = messageFor(stranger, credentials);
  const graphql = 'application/graphql-response+json';
  const type = exchange.header('accept')?.includes(graphql) ? graphql : 'application/json';
  return {
    status: 401,
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'www-authenticate': challenges(stranger, credentials).join(', '),
      'cache-control': 'no-store',
    },
    body: JSON.stringify({ errors: [{ message, extensions: { code: 'UNAUTHENTICATED' } }] }),
  };
}

function messageFor(stranger: Stranger, { apiKeyOwner, bearerTokenOwner }: Credentials): string {
  if (stranger.kind === 'nobody') {
    const ways = [
      ...(apiKeyOwner ? ['an API key, as "x-api-key: <key>"'] : []),
      ...(bearerTokenOwner ? ['a token, as "authorization: Bearer <token>"'] : []),
    ];
    return `Say who you are: send ${ways.join(', or ')}. The operator of this gateway gives them out.`;
  }
  return stranger.header === 'x-api-key'
    ? 'The API key in x-api-key is not known here. Check that it is sent whole and once; the operator of this gateway can make a new one.'
    : 'The authorization header holds no bearer token that is valid here and now. Get a new token for this gateway, and send it once, ' +
        'as "authorization: Bearer <token>"; if that is refused too, its operator finds the reason in the log.';
}

/** At least one has to be there (RFC 9110, 11.6.1). There is no registered scheme for API keys. */
function challenges(
  stranger: Stranger,
  { apiKeyOwner, bearerTokenOwner }: Credentials,
): readonly string[] {
  const isRefused = stranger.kind === 'refused' && stranger.header === 'authorization';
  return [
    ...(apiKeyOwner ? [`ApiKey ${REALM}, header="x-api-key"`] : []),
    // The code only where a token was sent (RFC 6750, 3.1).
    ...(bearerTokenOwner ? [`Bearer ${REALM}${isRefused ? ', error="invalid_token"' : ''}`] : []),
  ];
}

const REALM = 'realm="recruiting-subgraph"';
