#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { run } from './cli/program.ts';

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => stop.abort());
}
process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  readFile: (path) => readFileSync(path, 'utf8'),
  stop: stop.signal,
});
