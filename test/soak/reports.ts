import process from 'node:process';
import { lookAtHeld } from './held.ts';

// Loaded into a gateway with --import, which is then asked from outside.
process.on('message', (message) => {
  if (message === 'look') process.send!(lookAtHeld());
});
// Otherwise the gateway would live for as long as somebody may ask.
process.channel?.unref();
