import { listen } from '../../../src/http/listen.ts';
import { fullSdl, fullService } from '../../service/full.ts';
import type { ServiceOptions } from '../../service/service.ts';
import type { TestGatewayOptions } from './gateway.ts';
import { startGatewayOverService, type GatewayOverService } from './over-service.ts';

/** A gateway that also listens on a port, so that the tests include what Node does to a request. */
export interface Front extends GatewayOverService {
  readonly url: string;
}

export async function startFront(
  service: ServiceOptions = {},
  options: TestGatewayOptions = {},
): Promise<Front> {
  const gateway = await startGatewayOverService(service, options);
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  return {
    ...gateway,
    url: server.url,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

/** In front of the service that has every kind of field. */
export function startFullFront(options: TestGatewayOptions = {}): Promise<Front> {
  return startFront(fullService(), { snapshot: fullSdl, ...options });
}
