import { listen } from '../../src/http/listen.ts';
import { startService, type Service } from '../service/service.ts';
import {
  startGateway,
  type TestGateway,
  type TestGatewayOptions,
} from '../support/gateway/gateway.ts';
import { fullSdl, fullService } from '../service/full.ts';

/** A gateway over the full service on a real port, so that the tests include what Node does to a request. */
export interface Front extends AsyncDisposable {
  readonly url: string;
  readonly gateway: TestGateway;
  readonly service: Service;
  /** What the mutations of the upstream have done. */
  readonly sent: { renames: number };
}

export async function startFront(options: TestGatewayOptions = {}): Promise<Front> {
  const { schema, sent } = fullService();
  const service = await startService({ schema });
  const gateway = await startGateway(service, { snapshot: fullSdl, ...options });
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  return {
    url: server.url,
    gateway,
    service,
    sent,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await gateway[Symbol.asyncDispose]();
      await service.close();
    },
  };
}

/** A POST as GraphQL clients send it. A text is sent unchanged. */
export function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

export interface Body {
  data?: Record<string, unknown> | null;
  errors?: {
    message: string;
    path?: unknown[];
    extensions: { code: string; [fact: string]: unknown };
  }[];
}
