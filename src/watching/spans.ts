import {
  context,
  defaultTextMapGetter,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
} from '@opentelemetry/api';

/**
 * Spans by whatever SDK the operator has registered; without one none of this does anything. Parents are passed on
 * explicitly: what several callers share, and what waited in a queue, runs in whose context it happens to.
 */
export interface Spans {
  /** The span of a caller's request, below the one of its `traceparent`. */
  request(headers: Headers, attributes: Attributes): Context;
  /** A span below that of the context. */
  begin(name: string, kind: SpanKind, parent: Context, attributes: Attributes): Context;
  /** One that is over, and belongs to nobody's request. */
  past(name: string, seconds: number, attributes: Attributes, error?: string): void;
}

export function createSpans(version: string): Spans {
  const tracer = trace.getTracer('recruiting-subgraph', version);
  const begin: Spans['begin'] = (name, kind, parent, attributes) =>
    trace.setSpan(parent, tracer.startSpan(name, { kind, attributes }, parent));
  return {
    begin,
    request: (headers, attributes) =>
      begin('request', SpanKind.SERVER, callersContext(headers), attributes),
    past: (name, seconds, attributes, error) => {
      const startTime = Date.now() - seconds * 1000;
      const options = { kind: SpanKind.CLIENT, startTime, attributes };
      end(tracer.startSpan(name, options, ROOT_CONTEXT), error);
    },
  };
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

export function traceHeaders(of: Context): Record<string, string> {
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
