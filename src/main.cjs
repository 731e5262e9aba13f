#!/usr/bin/env node
// src/main.ts is a link to this file. A Node version that cannot strip types refuses to load .ts files, but it uses the
// name of the link's target, and every version can load CommonJS.
const { existsSync } = require('node:fs');
const { join } = require('node:path');
const process = require('node:process');

const NEEDED = 24;

if (Number.parseInt(process.versions.node, 10) < NEEDED) {
  // The package has JavaScript in its place.
  const isRepository = existsSync(join(__dirname, 'process.ts'));
  process.stderr.write(
    `The gateway needs Node ${NEEDED} or newer, and this is Node ${process.versions.node}. ` +
      (isRepository
        ? 'After `npm ci`, `npm start` runs it with the right one, and `npm start -- <command>` its commands.\n'
        : `After \`npm install node@${NEEDED}\` in the same folder, \`npx recruiting-subgraph\` runs it with the right one.\n`),
  );
  process.exitCode = 2;
} else void start();

async function start() {
  // Half of a start is compiling. Before the first TypeScript file, so that all of them are found in the cache, and what
  // strips types, which takes 16 MB and a tenth of a start, is not loaded. Whoever can write to this folder can replace
  // the code beside it.
  const { enableCompileCache } = require('node:module');
  enableCompileCache(join(require.resolve('graphql'), '../../.compile-cache'));
  await import('./process.ts');
}
