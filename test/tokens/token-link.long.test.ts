import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  readTokenFile,
  readTokenLink,
  TokenLinkError,
} from '../../src/tokens/service/token-link.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { DAY, HOUR, ManualClock, MINUTE } from '../support/random/manual-clock.ts';
import { startServer, writeHugeBody } from '../support/test-server.ts';
import { startKept, type Kept } from '../support/tokens/kept.ts';
import {
  codesOf,
  json,
  pairOf,
  PERSON,
  startScripted,
  watchStore,
} from '../support/tokens/tokens.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

type LinkAnswer = (response: ServerResponse) => void;

const set = { access_token: 'made-access', refresh_token: 'made-refresh', expires_in: 86_400 };

describe('a token link', () => {
  const forGood: [string, LinkAnswer, RegExp][] = [
    ['404', (response) => json(response, 404, {}), /is dead .*30 days.*new token/s],
    ['410', (response) => json(response, 410, {}), /is dead .*30 days.*new token/s],
    ['HTML', html, /page for people.*Open it in a browser.*tokens import <file>.*tokens import -/s],
    [
      'a page of 100 KiB',
      (response) =>
        void response
          .writeHead(200, { 'content-type': 'text/html' })
          .end(`<html>${'x'.repeat(102_400)}</html>`),
      /page for people/,
    ],
    [
      'a page for people who have to sign in',
      (response) => void response.writeHead(403).end('<html>Sign in</html>'),
      /page for people/,
    ],
    ['nothing', (response) => void response.end(), /does not give a token set/],
    [
      'JSON without tokens',
      (response) => json(response, 200, { name: 'x' }),
      /does not give a token/,
    ],
    ['JSON null', (response) => json(response, 200, null), /does not give a token set/],
    [
      'an empty refresh token',
      (response) => json(response, 200, { ...set, refresh_token: '' }),
      /does not give a token set/,
    ],
    ['100 MB', huge, /does not give a token set/],
    [
      'a pair behind 64 KiB',
      (response) => json(response, 200, { pad: 'x'.repeat(70_000), ...set }),
      /does not/,
    ],
  ];

  test.each(forGood)(
    'a link that returns %s is read once, and the log says what to do',
    async (_, answer, says) => {
      const { kept, reads } = await startWithLink(answer);
      await kept.clock.asleep();
      expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_MISSING']);
      await kept.clock.pass(DAY);
      expect(reads()).toBe(1);
      expect(troubles(kept)).toEqual([expect.stringMatching(says)]);
      expect(await kept.store.read()).toBeNull();
    },
  );

  test('a redirect to another host is not followed: nothing arrives there', async () => {
    let arrived = 0;
    const elsewhere = await startServer((_, response) => {
      arrived += 1;
      json(response, 200, set);
    });
    const { kept, reads } = await startWithLink((response) => {
      response.writeHead(302, { location: `${elsewhere}/set.json` }).end();
    });
    await kept.clock.pass(DAY);
    expect([arrived, reads()]).toEqual([0, 1]);
    expect(troubles(kept)).toEqual([expect.stringMatching(/redirect, which is not followed/)]);
    expect(await kept.store.read()).toBeNull();
  });

  const passing: [string, LinkAnswer][] = [
    ['a 500', (response) => json(response, 500, {})],
    ['a 503 with HTML', (response) => void response.writeHead(503).end('<html>Wait</html>')],
    ['a 429', (response) => json(response, 429, {})],
    ['a connection cut at once', (response) => void response.destroy()],
    [
      'a connection cut within the body',
      (response) => {
        response.writeHead(200, { 'content-length': 500 });
        response.write('{"access', () => response.destroy());
      },
    ],
  ];

  test.each(passing)(
    'a link that returns %s is tried again with growing pauses, delays no caller, and is imported later',
    async (_, answer) => {
      const { kept, reads, heal } = await startWithLink(answer);
      await kept.clock.asleep();
      expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_MISSING']);
      await kept.clock.pass(HOUR);
      expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_MISSING']);
      expect(reads()).toBeGreaterThan(5);
      expect(reads()).toBeLessThan(60);
      heal();
      await kept.clock.pass(10 * MINUTE);
      expect(codesOf(await kept.ask(PERSON))).toEqual([]);
      expect(await kept.store.read()).toMatchObject({ generation: 2 });
    },
  );

  test('a link whose host refuses connections is tried again until it answers', async () => {
    const service = await startScripted();
    await service.down();
    const kept = await startKept(service);
    expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_MISSING']);
    expect(troubles(kept)).toEqual([expect.stringMatching(/cannot be read \(ECONNREFUSED\)/)]);
    await service.up();
    await kept.clock.pass(10 * MINUTE);
    expect(codesOf(await kept.ask(PERSON))).toEqual([]);
    expect(service.exchanges).toHaveLength(1);
  });

  test('a link that keeps failing is dropped when another process imports a set', async () => {
    const { kept, reads } = await startWithLink((response) => json(response, 500, {}));
    await kept.clock.asleep();
    const byHand = { baseUrl: kept.url, pair: pairOf('by hand'), replica: 'test', after: null };
    await kept.store.import(byHand);
    await kept.clock.pass(10 * MINUTE);
    const before = reads();
    await kept.clock.pass(DAY);
    expect(reads()).toBe(before);
    expect(await kept.store.read()).toMatchObject({ pair: pairOf('by hand') });
  });

  test('a gateway can stop while a link is tried again', async () => {
    const { kept } = await startWithLink((response) => json(response, 500, {}));
    await kept.clock.asleep();
    await kept.stop();
    expect(troubles(kept)).toHaveLength(1);
  });

  test('a spent link replaces nothing, also if the set of the store is lost', async () => {
    const service = await startScripted();
    const spent = service.tokenLink;
    const first = await startKept(service);
    await first.clock.asleep();
    await first.ask(PERSON);
    service.makeNewSet();
    service.expire();
    expect(codesOf(await first.ask(PERSON))).toEqual(['TOKENS_LOST']);
    await first.stop();

    const before = await first.store.read();
    const { clock, store } = first;
    const second = await startKept({ url: service.url, tokenLink: spent }, { clock, store });
    await clock.pass(HOUR);
    expect(codesOf(await second.ask(PERSON))).toEqual(['TOKENS_LOST']);
    const age = expect.any(Number) as number;
    expect(await store.read()).toEqual({ ...before, age });
    expect(troubles(second)).toContainEqual(expect.stringMatching(/is dead/));
  });
});

describe('a link on which several gateways start at once', () => {
  test.each(['is dead by the time that its answer comes', 'gives a pair that is spent by then'])(
    'a link that %s is not an error if another gateway imported its set: that set is served',
    async (which) => {
      const service = await startScripted();
      const link = Promise.withResolvers<void>();
      const arrived = Promise.withResolvers<void>();
      let reads = 0;
      const linkHost = await startServer((_, response) => {
        reads += 1;
        const isFirst = reads === 1;
        const early = fetch(service.tokenLink);
        if (!isFirst) arrived.resolve();
        const late = async () => {
          await link.promise;
          return which.startsWith('is dead') ? fetch(service.tokenLink) : early;
        };
        (isFirst ? early : late())
          .then(async (real) => json(response, real.status, await real.json()))
          .catch(() => response.destroy());
      });
      const upstream = { url: service.url, tokenLink: `${linkHost}/link` };
      const place = mkdtempSync(join(tmpdir(), 'link-'));
      onTestFinished(() => rmSync(place, { recursive: true, force: true }));
      const open = () => watchStore((now) => openSqliteStore(join(place, 'tokens.db'), { now }));
      const clock = new ManualClock();

      const [first, second, third] = await Promise.all([
        startKept(upstream, { clock, store: open() }),
        startKept(upstream, { clock, store: open() }),
        startKept(upstream, { clock, store: open() }),
      ]);
      const gateways = [first, second, third];
      await arrived.promise;
      const asked = gateways.map((one) => one.ask(personUnlikeOthers()));
      // One of them has its answer, imports and refreshes.
      await vi.waitFor(async () =>
        expect(await first.store.read()).toMatchObject({ generation: 2 }),
      );
      link.resolve();
      expect((await Promise.all(asked)).flatMap(codesOf)).toEqual([]);
      expect(service.exchanges).toHaveLength(1);
      expect(gateways.flatMap(troubles)).toEqual([]);
      expect(gateways.flatMap(({ logged }) => logged.map(({ msg }) => msg))).toContainEqual(
        'tokens were taken over from the token store',
      );
    },
  );

  test('a gateway that could not reach the link serves at once with a set that another one imports', async () => {
    const { kept, reads, realLink } = await startWithLink((response) => json(response, 500, {}));
    await kept.clock.pass(10 * MINUTE);
    expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_MISSING']);
    const before = reads();
    const pair = readTokenSet(await (await fetch(realLink)).json())!;
    const byHand = { baseUrl: kept.url, pair, replica: 'test', after: null };
    await kept.store.import(byHand);
    expect(codesOf(await kept.ask(PERSON))).toEqual([]);
    expect(reads()).toBe(before);
  });
});

describe('reading a token link', () => {
  test('reading a link returns its pair, and ignores when it was made', async () => {
    const host = await startServer((_, response) =>
      json(response, 200, { ...set, name: 'Made', created_at: 'nobody knows the unit' }),
    );
    expect(
      await readTokenLink(`${host}/link?of=mine`, { agent: 'test', proxy: undefined }),
    ).toEqual({
      accessToken: 'made-access',
      refreshToken: 'made-refresh',
      expiresIn: 86_400,
      refreshTokenExpiresIn: 10_368_000,
      name: 'Made',
    });
  });

  test('the error of a failed read says what to do, and never contains the link', async () => {
    const host = await startServer((_, response) => json(response, 404, {}));
    const link = `${host}/a/secret/path?and=a-secret-query`;
    const error: unknown = await readTokenLink(link, { agent: 'test', proxy: undefined }).catch(
      (it: unknown) => it,
    );
    expect(error).toBeInstanceOf(TokenLinkError);
    const { message, passing } = error as TokenLinkError;
    expect(message).toMatch(/is dead .* use its new link/);
    expect(message).not.toMatch(/secret|TOKEN_LINK/);
    expect(passing).toBe(false);
  });
});

describe('reading a token file', () => {
  test.each([
    ['as the link shows it', JSON.stringify({ ...set, created_at: 1 })],
    ['with lines and a byte order mark', `\uFEFF${JSON.stringify(set, null, 2)}\r\n`],
    ['with odd lives', JSON.stringify({ ...set, expires_in: 'a day' })],
  ])('a text %s returns its pair', (_, text) => {
    expect(readTokenFile(text)).toMatchObject(
      pairOf('x', {
        accessToken: 'made-access',
        refreshToken: 'made-refresh',
        name: null,
      }),
    );
  });

  test.each([
    ['nothing', ''],
    ['half of its JSON', JSON.stringify(set).slice(0, 50)],
    ['no refresh token', '{"access_token":"made-access"}'],
    ['null', 'null'],
    ['more than 64 KiB', JSON.stringify({ pad: 'x'.repeat(65_536), ...set })],
  ])('the error for %s says what to provide instead, without a token', (_, text) => {
    const read = () => readTokenFile(text);
    expect(read).toThrow(TokenLinkError);
    expect(read).toThrow(/not a token set .* the link itself\.$/);
    expect(read).not.toThrow(/made-/);
  });

  test('the error for a page says to save the JSON that it shows, without a token', () => {
    const page = '\uFEFF<html>made-access</html>';
    expect(() => readTokenFile(page)).toThrow(TokenLinkError);
    expect(() => readTokenFile(page)).toThrow(/Save the JSON that the page shows in a browser/);
    expect(() => readTokenFile(page)).not.toThrow(/made-/);
  });
});

/** A gateway whose link gets this answer, until the test restores it. */
async function startWithLink(answer: LinkAnswer) {
  const service = await startScripted();
  let reads = 0;
  let healed = false;
  const linkHost = await startServer((_, response) => {
    reads += 1;
    if (!healed) return answer(response);
    fetch(service.tokenLink)
      .then((real) => real.json())
      .then((body) => json(response, 200, body))
      .catch(() => response.destroy());
  });
  const tokenLink = `${linkHost}/a/secret/path-that-nobody-may-see?and=a-secret-query`;
  const kept = await startKept({
    url: service.url,
    tokenLink,
    secrets: ['secret/path', 'a-secret-query'],
  });
  return {
    kept: { ...kept, url: service.url },
    reads: () => reads,
    realLink: service.tokenLink,
    heal: () => void (healed = true),
  };
}

function troubles({ logged }: Kept): unknown[] {
  // Not the lines about answers to callers.
  return logged
    .filter(({ level, errorId }) => Number(level) >= 40 && errorId === undefined)
    .map(({ msg }) => msg);
}

function html(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in, please</html>');
}

function huge(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  writeHugeBody(response);
}
