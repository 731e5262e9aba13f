import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** An issuer of bearer tokens, in this process: a gateway fetches the keys once, before it is measured. */
export interface Issuer extends AsyncDisposable {
  /** The settings of a gateway that accepts its tokens. */
  readonly env: Readonly<Record<string, string>>;
  /** Tokens by algorithm. Each has the scopes of the API key in `FRONT_DOOR`, and outlives the benchmark. */
  readonly tokens: ReadonlyMap<string, string>;
}

const ALGORITHMS = ['RS256', 'ES256'];
const ISSUER = 'https://login.example.com';
const AUDIENCE = 'recruiting';

export async function startIssuer(): Promise<Issuer> {
  const signed = await Promise.all(ALGORITHMS.map(sign));
  const answer = JSON.stringify({ keys: signed.map(({ key }) => key) });
  const server = createServer((_request, response) => response.end(answer));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    env: {
      AUTH_JWKS_URL: `http://127.0.0.1:${port}/keys`,
      AUTH_ISSUER: ISSUER,
      AUTH_AUDIENCE: AUDIENCE,
    },
    tokens: new Map(signed.map(({ key, token }) => [key.alg, token])),
    [Symbol.asyncDispose]: async () => {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function sign(alg: string) {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  const token = await new SignJWT({ scope: 'read drain' })
    .setProtectedHeader({ alg, kid: alg })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject('bench')
    .setExpirationTime('12h')
    .sign(privateKey);
  return { key: { ...(await exportJWK(publicKey)), alg, kid: alg, use: 'sig' }, token };
}
