import * as zlib from 'node:zlib';
import type { TokenFault } from '../../../src/sandbox/token-answers.ts';

export type RewrittenAnswer = Extract<TokenFault, (json: string) => unknown>;

/** Answers of the token endpoint that carry a pair in another way than the service documents. */
export const CARRIED_PAIRS: Readonly<Record<string, RewrittenAnswer>> = {
  '201': (json) => ({ status: 201, body: json }),
  '203': (json) => ({ status: 203, body: json }),
  gzip: encoded('gzip', (json) => zlib.gzipSync(json)),
  br: encoded('br', (json) => zlib.brotliCompressSync(json)),
  'UTF-16': (json) => ({ status: 200, body: Buffer.from(`\uFEFF${json}`, 'utf16le') }),
  'bytes behind the JSON': (json) => ({ status: 200, body: `${json}\n<!-- proxy-7 -->` }),
};

/** A proxy that wraps the answer of the service into an error of its own. */
export const namedInError: RewrittenAnswer = (json) => ({
  status: 503,
  body: `{"upstream":${json}}`,
});

function encoded(encoding: string, pack: (json: string) => Uint8Array): RewrittenAnswer {
  return (json) => ({
    status: 200,
    headers: { 'content-encoding': encoding },
    body: pack(json),
  });
}
