import {
  context,
  defaultTextMapGetter,
  INVALID_SPAN_CONTEXT,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type ProxyTracerProvider,
  type Span,
} from '@opentelemetry/api';

/**
 * Spans of the SDK that the operator has registered; without one, nothing is created, read or sent on. Parents are
 * passed on explicitly: shared work, and work that waited in a queue, does not run in the context of its caller.
 */
export interface Spans {
  /** Begins the span of a caller's request, below that of its `traceparent`. */
  request(of: TracedRequest): Context;
  /** Begins a span below that of the parent context. */
  begin(name: string, kind: SpanKind, parent: Context, attributes: Attributes): Context;
  /** Records a span that is over and belongs to no request. */
  past(name: string, seconds: number, attributes: Attributes, error?: string): void;
}

interface TracedRequest {
  readonly method: string;
  header(name: string): string | undefined;
}

/** The attribute for the service's own id of a request that failed: its support finds the request by it. */
export const REQUEST_ID = 'http.response.header.x-request-id';

/** The context of a request that is not traced. Its span ignores everything. */
const UNTRACED = trace.setSpan(ROOT_CONTEXT, trace.wrapSpanContext(INVALID_SPAN_CONTEXT));

export function createSpans(version: string): Spans {
  const name = 'recruiting-subgraph';
  const tracer = trace.getTracer(name, version);
  /** Checked each time, since an SDK may be registered after the start; takes about 20 ns. */
  const isTracing = () => {
    const provider: object = trace.getTracerProvider();
    // A provider that is not a proxy was set by an SDK, through another copy or a later version of the API package.
    const hasTracer = !isProxy(provider) || provider.getDelegateTracer(name, version) !== undefined;
    // A propagator without an SDK sends on the trace context of callers.
    return hasTracer || propagation.fields().length > 0;
  };
  const begin: Spans['begin'] = (of, kind, parent, attributes) => {
    if (!isTraced(parent) || !isTracing()) return UNTRACED;
    return trace.setSpan(parent, tracer.startSpan(of, { kind, attributes }, parent));
  };
  return {
    begin,
    request: (of) => {
      if (!isTracing()) return UNTRACED;
      const attributes = { 'http.request.method': of.method };
      return begin('request', SpanKind.SERVER, callersContext(of), attributes);
    },
    past: (of, seconds, attributes, error) => {
      const startTime = Date.now() - seconds * 1000;
      const options = { kind: SpanKind.CLIENT, startTime, attributes };
      end(tracer.startSpan(of, options, ROOT_CONTEXT), error);
    },
  };
}

function isTraced(of: Context): boolean {
  return of !== UNTRACED;
}

export function spanOf(of: Context): Span {
  return trace.getSpan(of)!;
}

/** @param error the code of what went wrong */
export function end(span: Span, error?: string, isFailure = true): void {
  if (error !== undefined) {
    span.setAttribute('error.type', error);
    if (isFailure) span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

/** Those of W3C Trace Context only: a caller's baggage is not for the service. */
const TRACE_HEADERS = ['traceparent', 'tracestate'];

export function traceHeaders(of: Context): Record<string, string> | undefined {
  if (!isTraced(of)) return undefined;
  const headers: Record<string, string> = {};
  propagation.inject(of, headers);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => TRACE_HEADERS.includes(name)),
  );
}

/** The active context, if the operator has instrumented the server; otherwise the one in the caller's headers. */
function callersContext(request: TracedRequest): Context {
  const active = context.active();
  if (trace.getSpan(active)) return active;
  const carrier: Record<string, string> = {};
  for (const name of TRACE_HEADERS) {
    const value = request.header(name);
    if (value !== undefined) carrier[name] = value;
  }
  return propagation.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter);
}

function isProxy(provider: object): provider is ProxyTracerProvider {
  return 'getDelegateTracer' in provider;
}
