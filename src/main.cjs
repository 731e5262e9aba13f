#!/usr/bin/env node
// src/main.ts is a link to this file. A Node version that cannot strip types refuses to load .ts files, but it uses the
// name of the link's target, and every version can load CommonJS.
const { join } = require('node:path');
const process = require('node:process');

const NEEDED = 24;

if (Number.parseInt(process.versions.node, 10) < NEEDED) {
  process.stderr.write(
    `The gateway needs Node ${NEEDED} or newer, and this is Node ${process.versions.node}. After \`npm ci\` in the repository, ` +
      '`npm start` runs it with the right one, and `npm start -- <command>` its commands. ' +
      `After \`npm install node@${NEEDED}\` beside the package, \`npx recruiting-subgraph\` does.\n`,
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
