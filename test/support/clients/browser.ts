import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import packaged from '@sparticuz/chromium';
import { chromium, type Browser } from 'playwright-core';

/**
 * A real Chromium from an npm package. It can connect to this machine only. The caller closes it: `await
 * browser.close()`.
 */
export async function openBrowser(): Promise<Browser> {
  const home = await unpacked();
  const executablePath = join(home, 'chromium');
  return chromium.launch({
    executablePath,
    headless: true,
    args: [
      ...packaged.args.filter((arg) => !unwanted.has(arg)),
      ...switches,
      `--host-resolver-rules=${ONLY_THIS_MACHINE}`,
    ],
    env: {
      ...process.env,
      FONTCONFIG_FILE: join(home, 'fonts.conf'),
      ...(await libraries(executablePath, home)),
    },
  });
}

// The packaged arguments are for serverless functions: they put everything into one process, which ends with the first
// closed context, and switch off the very rules that a test in a browser is about.
const unwanted: ReadonlySet<string> = new Set([
  '--single-process',
  '--no-zygote',
  '--in-process-gpu',
  '--disable-web-security',
  '--disable-site-isolation-trials',
  '--allow-running-insecure-content',
]);

const switches = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
];

const ONLY_THIS_MACHINE = 'MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE ::1';

const run = promisify(execFile);

// The package takes any file named `chromium` in the temporary folder for a complete browser, even one that another
// test is still unpacking. So it gets a folder of its own, which gets its final name when it is complete.
async function unpacked(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const home = join(tmpdir(), `recruiting-subgraph-chromium-${await version(entry)}`);
  if (existsSync(home)) return home;
  const unfinished = await mkdtemp(`${home}-`);
  try {
    await run(process.execPath, ['--input-type=module', '--eval', unpack, entry], {
      env: { ...process.env, TMPDIR: unfinished, AWS_EXECUTION_ENV: withLibraries },
    });
    await writeFile(join(unfinished, 'fonts.conf'), fontConfiguration(home));
    await rename(unfinished, home);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(home)) throw error;
  }
  return home;
}

async function version(entry: string): Promise<string> {
  const manifest = await readFile(join(dirname(entry), '..', 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

const unpack = `
  const { pathToFileURL } = await import('node:url');
  const { default: packaged } = await import(pathToFileURL(process.argv[1]));
  await packaged.executablePath();
`;

// With this the package also unpacks the shared libraries that it believes only Amazon Linux lacks.
const withLibraries = 'AWS_Lambda_nodejs24.x';

function fontConfiguration(home: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(home, 'fonts')}</dir>
  <cachedir>${join(home, 'fonts-cache')}</cachedir>
</fontconfig>
`;
}

async function libraries(executable: string, home: string): Promise<{ LD_LIBRARY_PATH?: string }> {
  try {
    await run(executable, ['--version']);
    return {};
  } catch {
    const present = process.env['LD_LIBRARY_PATH'];
    const bundled = join(home, 'al2023', 'lib');
    return { LD_LIBRARY_PATH: present ? `${bundled}:${present}` : bundled };
  }
}
