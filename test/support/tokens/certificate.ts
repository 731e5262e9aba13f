import { writeFileSync } from 'node:fs';
import { generate } from 'selfsigned';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';

/** Of a name, and of an address. */
const ALT_NAMES = [{ type: 2, value: 'localhost' } as const, { type: 7, ip: '127.0.0.1' } as const];

/**
 * A self-signed certificate, made anew each time, so that no key is checked in.
 *
 * @returns also the path of the certificate, for NODE_EXTRA_CA_CERTS
 */
export async function makeCertificate(): Promise<{ key: string; cert: string; path: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'test' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: ALT_NAMES }],
  });
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = folder.file('cert.pem');
  writeFileSync(path, cert);
  return { key, cert, path };
}
