import process from 'node:process';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { startFaultyLine } from '../support/imitations/faulty-line.ts';

// A rotation each 13 seconds or so, and one in four is cut off before it is processed.
const sandbox = await startSandbox({ expiresIn: 20, persons: 137 });
sandbox.tokenAnswers.every(4, 'drop-before');
const line = await startFaultyLine(sandbox, {
  outageEvery: 20_000,
  outageMs: 6_000,
  hangMs: 1_500,
});
process.on('message', () => process.send!({ rotations: sandbox.exchanges.length }));
process.on('disconnect', () => process.exit());
process.send!({ url: line.url, tokenLink: line.tokenLink });
