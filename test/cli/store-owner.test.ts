/** Commands that root runs, on the store of a gateway that another user runs. */
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { BOUND } from '../support/processes/bound-user.ts';
import { runProgram, startServe } from '../support/processes/process.ts';
import { startOperator } from './tokens-operator.ts';

const isRoot = process.getuid?.() === 0;

test.runIf(isRoot)(
  'a store that root makes in a folder of another user can be used by that user',
  async () => {
    const { service, file, env } = await startOperator();
    const home = file('home');
    mkdirSync(home);
    chownSync(home, BOUND, BOUND);
    // The folder of the test is private to root.
    chownSync(file('.'), BOUND, BOUND);
    const settings = {
      ...env,
      TOKEN_STORE: `sqlite:${home}/deep/store/tokens.db`,
      TOKEN_RESCUE_DIR: `${home}/deep/rescue`,
    };
    const imported = await runHere(['tokens', 'import', service.tokenLink], settings);
    expect(imported).toMatchObject({ code: 0, stderr: '' });
    for (const name of readdirSync(home, { recursive: true, encoding: 'utf8' })) {
      expect([name, statSync(`${home}/${name}`).uid]).toEqual([name, BOUND]);
    }
    await using gateway = await startServe({
      env: { ...settings, ALLOW_ANONYMOUS: 'true' },
      user: BOUND,
    });
    expect((await fetch(new URL('/ready', gateway.url))).status).toBe(200);
    const refreshed = await runProgram(['tokens', 'refresh'], { env: settings, user: BOUND });
    expect(refreshed).toMatchObject({ code: 0, stderr: '' });
  },
);

test.runIf(isRoot)(
  'a gateway that may not use a store of root names its owner, and the command that helps',
  async () => {
    const { service, file, env } = await startOperator();
    chownSync(file('.'), BOUND, BOUND);
    mkdirSync(file('data'), { mode: 0o700 });
    const settings = { ...env, TOKEN_STORE: `sqlite:${file('data/tokens.db')}` };
    expect((await runHere(['tokens', 'import', service.tokenLink], settings)).code).toBe(0);
    const { code, stderr } = await runProgram([], {
      env: { ...settings, ALLOW_ANONYMOUS: 'true' },
      user: BOUND,
    });
    expect(code).toBe(1);
    expect(stderr).toContain(
      `${file('data')} belongs to user 0 (root), and this process runs as user ${BOUND}.`,
    );
    const [command] = /chown -R .*/.exec(stderr)!;
    spawnSync(command, { shell: true });
    await using gateway = await startServe({
      env: { ...settings, ALLOW_ANONYMOUS: 'true' },
      user: BOUND,
    });
    expect((await fetch(new URL('/ready', gateway.url))).status).toBe(200);
  },
);
