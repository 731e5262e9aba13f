import { createErrorPolicy } from '../../../src/http/error-policy.ts';
import type { Stage } from '../../../src/http/exchange.ts';
import { createHandler, replyOfStages } from '../../../src/http/handler.ts';
import { createTelemetry } from '../../../src/telemetry/telemetry.ts';
import { recordingLog } from './recording-log.ts';

/** Handles requests by this stage alone, with the errors and the log of a gateway. */
export function handlerOf(stage: Stage) {
  const { log, logged } = recordingLog();
  const errors = createErrorPolicy(log);
  const telemetry = createTelemetry({ version: '1', log }).requests();
  const handler = createHandler(
    async (exchange) => (await replyOfStages([stage], exchange, errors))!,
    errors,
    telemetry,
  );
  return { handler, logged };
}
