/** Floods of requests that are refused or wait, in a process of their own: it takes the time to send them. */
import process from 'node:process';
import { flood, type FloodSizes } from '../support/processes/floods.ts';

/** Sends one flood of these sizes. The reply is how often each status was received. */
export interface FloodOrder {
  readonly origin: string;
  readonly sizes: FloodSizes;
  readonly round: number;
}

process.on('message', ({ origin, sizes, round }: FloodOrder) => {
  void flood(origin, sizes, round).then((outcomes) => process.send!([...outcomes]));
});
process.on('disconnect', () => process.exit());
