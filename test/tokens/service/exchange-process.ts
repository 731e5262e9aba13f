import { systemClock } from '../../../src/clock.ts';
import { tokenEndpoint } from '../../../src/tokens/service/exchange.ts';
import { reasonOf } from '../../../src/tokens/service/connection.ts';

// One exchange in a process of its own, which can be stopped and has its own certificates: see startExchange.
const options = JSON.parse(process.argv[2]!) as { baseUrl: string; patienceMs?: number };
try {
  const endpoint = await tokenEndpoint({
    agent: 'test',
    proxy: undefined,
    clock: systemClock,
    ...options,
  })();
  process.send!(await endpoint.exchange('refresh-1', () => true));
  await endpoint.close();
} catch (error) {
  process.send!({ kind: 'not connected', why: reasonOf(error) });
}
process.disconnect();
