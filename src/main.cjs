#!/usr/bin/env node
// src/main.ts is a link to this file. A Node that cannot strip types refuses a file of that name before its first line;
// but it goes by the name of the file behind the link, and CommonJS is read by all.
const process = require('node:process');

const NEEDED = 24;

if (Number.parseInt(process.versions.node, 10) < NEEDED) {
  process.stderr.write(
    `The gateway needs Node ${NEEDED} or newer, and this is Node ${process.versions.node}. ` +
      'After `npm ci`, `npm start` runs it with the right one, and `npm start -- <command>` its commands.\n',
  );
  process.exitCode = 2;
} else void start();

async function start() {
  const { cacheCompiledCode } = await import('./compile-cache.js');
  // Before the first file of TypeScript: then these are found in the cache, and what strips types need not be loaded.
  cacheCompiledCode();
  await import('./process.ts');
}
