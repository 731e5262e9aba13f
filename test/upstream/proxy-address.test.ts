import { expect, test, vi } from 'vitest';
import { thisMachine } from '../../src/setup/machine.ts';

test.each([
  ['proxy.example:3128', 'http://proxy.example:3128'],
  ['http://proxy.example:3128', 'http://proxy.example:3128'],
  ['https://proxy.example:3128', 'https://proxy.example:3128'],
])('a proxy that is written as %s is used as %s, as by curl', (written, used) => {
  vi.stubEnv('https_proxy', written);
  try {
    expect(thisMachine.proxyFor('https://service.example/graphql')).toBe(used);
  } finally {
    vi.unstubAllEnvs();
  }
});
