import type { RequestListener } from 'node:http';
import {
  exportJWK,
  generateKeyPair,
  SignJWT,
  type CryptoKey,
  type JWK,
  type JWTPayload,
} from 'jose';
import type { TrustedIssuer } from '../../../src/http/auth/bearer-tokens.ts';
import { serveHttp } from '../../support/listening.ts';

/** An issuer of bearer tokens, which serves the keys to verify them. */
export interface Issuer extends AsyncDisposable {
  /** The settings that trust this issuer. */
  readonly jwt: TrustedIssuer;
  /** The number of requests for the keys. */
  readonly requests: number;
  readonly keys: JWK[];
  /** A valid token with the scope read, with these claims changed, or removed if undefined. The key id selects the key. */
  token(claims?: object, header?: { kid?: string | undefined }): Promise<string>;
  addKey(alg: string, kid: string): Promise<void>;
  /** Sets the answer to requests for the keys. */
  answer(reply: RequestListener): void;
}

export const seconds = (from: number) => Math.floor(Date.now() / 1000) + from;

/** Starts an issuer with one key, `ec`. */
export async function startIssuer(): Promise<Issuer> {
  const pairs = new Map<string, { privateKey: CryptoKey; alg: string }>();
  const keys: JWK[] = [];
  let requests = 0;
  let reply: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }));
  };
  const server = await serveHttp((request, response) => {
    requests += 1;
    reply(request, response);
  });
  const jwt = {
    jwksUrl: `${server.url}/keys?of=all`,
    issuer: 'https://login.test',
    audience: 'recruiting',
  };

  const issuer: Issuer = {
    jwt,
    get requests() {
      return requests;
    },
    keys,
    addKey: async (alg, kid) => {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
      pairs.set(kid, { privateKey, alg });
      keys.push({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' });
    },
    token: async (claims = {}, header = {}) => {
      const kid = 'kid' in header ? header.kid : 'ec';
      const { privateKey, alg } = pairs.get(kid ?? 'ec') ?? pairs.get('ec')!;
      const usual = {
        iss: jwt.issuer,
        aud: jwt.audience,
        sub: 'ada',
        exp: seconds(300),
        scope: 'read',
      };
      const payload = JSON.parse(JSON.stringify({ ...usual, ...claims })) as JWTPayload;
      return new SignJWT(payload)
        .setProtectedHeader({ alg, ...(kid !== undefined && { kid }) })
        .sign(privateKey);
    },
    answer: (next) => {
      reply = next;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
  await issuer.addKey('ES256', 'ec');
  return issuer;
}
