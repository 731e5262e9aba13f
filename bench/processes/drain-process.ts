import process from 'node:process';
import { post } from '../ask.ts';

// In a separate process: reading long answers must not delay the measurement.
const [endpoint, count] = process.argv.slice(2) as [string, string];

async function drainForEver(name: string): Promise<void> {
  for (;;) {
    // Each drain has another selection, so that none is shared.
    const query = `{ allPersons { ${name}: id firstName } }`;
    const response = await post({ endpoint }, { query });
    const text = await response.text();
    if (!text.startsWith('{"data":{"allPersons":[{')) throw new Error(text.slice(0, 1_000));
    process.send!(name);
  }
}

process.on('disconnect', () => process.exit());
await Promise.all(Array.from({ length: Number(count) }, (_, at) => drainForEver(`id${at}`)));
