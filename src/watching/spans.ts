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
 * Spans by whatever SDK the operator has registered; without one nothing is made, read or passed on. Parents are passed
 * on explicitly: what several callers share, and what waited in a queue, runs in whose context it happens to.
 */
export interface Spans {
  /** The span of a caller's request, below the one of its `traceparent`. */
  request(headers: Headers, attributes: Attributes): Context;
  /** A span below that of the context. */
  begin(name: string, kind: SpanKind, parent: Context, attributes: Attributes): Context;
  /** One that is over, and belongs to nobody's request. */
  past(name: string, seconds: number, attributes: Attributes, error?: string): void;
}

/** Of a request that nobody traces: its span takes everything and keeps nothing. */
const UNTRACED = trace.setSpan(ROOT_CONTEXT, trace.wrapSpanContext(INVALID_SPAN_CONTEXT));

export function createSpans(version: string): Spans {
  const name = 'recruiting-subgraph';
  const tracer = trace.getTracer(name, version);
  /** Asked anew each time, since an SDK may be registered later than we start; it takes some 20 ns. */
  const isTracing = () => {
    const provider: object = trace.getTracerProvider();
    // Of another copy of the API's code it may be, or of a later one without proxies: then somebody has set it.
    const hasTracer = !isProxy(provider) || provider.getDelegateTracer(name, version) !== undefined;
    // A propagator alone passes on what callers send.
    return hasTracer || propagation.fields().length > 0;
  };
  const begin: Spans['begin'] = (of, kind, parent, attributes) => {
    if (!isTraced(parent) || !isTracing()) return UNTRACED;
    return trace.setSpan(parent, tracer.startSpan(of, { kind, attributes }, parent));
  };
  return {
    begin,
    request: (headers, attributes) =>
      isTracing()
        ? begin('request', SpanKind.SERVER, callersContext(headers), attributes)
        : UNTRACED,
    past: (of, seconds, attributes, error) => {
      const startTime = Date.now() - seconds * 1000;
      const options = { kind: SpanKind.CLIENT, startTime, attributes };
      end(tracer.startSpan(of, options, ROOT_CONTEXT), error);
    },
  };
}

/** Whether there is a span to tell of anything: what would only be told to it need not be made. */
export function isTraced(of: Context): boolean {
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

/** W3C Trace Context, and of that only these: a caller's baggage is not for the service. */
const TRACE_HEADERS = ['traceparent', 'tracestate'];

export function traceHeaders(of: Context): Record<string, string> | undefined {
  if (!isTraced(of)) return undefined;
  const headers: Record<string, string> = {};
  propagation.inject(of, headers);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => TRACE_HEADERS.includes(name)),
  );
}

/** Of the operator's instrumentation of the server, where there is one; else as the caller says. */
function callersContext(headers: Headers): Context {
  const active = context.active();
  if (trace.getSpan(active)) return active;
  const carrier: Record<string, string> = {};
  for (const name of TRACE_HEADERS) {
    const value = headers.get(name);
    if (value !== null) carrier[name] = value;
  }
  return propagation.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter);
}

function isProxy(provider: object): provider is ProxyTracerProvider {
  return 'getDelegateTracer' in provider;
}
