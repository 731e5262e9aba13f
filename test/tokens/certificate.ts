import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
  /** Where the certificate is, for NODE_EXTRA_CA_CERTS. */
  readonly path: string;
}

/** A certificate that vouches for itself, until the test is finished. Made with `openssl`, so that no key is checked in. */
export function makeCertificate(names = 'DNS:localhost,IP:127.0.0.1'): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'cert.pem');
  const keyPath = join(folder, 'key.pem');
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${names}`, '-days', '2'];
  const files = ['-keyout', keyPath, '-out', path];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, ...files], { stdio: 'pipe' });
  return { key: readFileSync(keyPath, 'utf8'), cert: readFileSync(path, 'utf8'), path };
}
