import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// Loaded into a gateway with --import: from outside nobody sees what of its memory is still in use.
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

process.on('message', () => {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  process.send!(heapUsed + arrayBuffers);
});
