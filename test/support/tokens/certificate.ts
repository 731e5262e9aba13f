import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { onTestFinished } from 'vitest';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
  /** The path of the certificate, for NODE_EXTRA_CA_CERTS. */
  readonly path: string;
}

const DNS = 2;
const IP = 7;
const ALT_NAMES = [
  { type: DNS, value: 'localhost' },
  { type: IP, ip: '127.0.0.1' },
] as const;

/** A self-signed certificate, made anew each time, so that no key is checked in. */
export async function makeCertificate(): Promise<Certificate> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'test' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: [...ALT_NAMES] }],
  });
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'cert.pem');
  writeFileSync(path, cert);
  return { key, cert, path };
}
