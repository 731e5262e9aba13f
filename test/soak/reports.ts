import process from 'node:process';
import { lookAtHeld } from './held.ts';

// Loaded into a gateway with --import, which then reports when it is asked from outside.
process.on('message', (message) => {
  if (message === 'look') process.send!(lookAtHeld());
});
// Otherwise the channel would keep the gateway alive.
process.channel?.unref();
