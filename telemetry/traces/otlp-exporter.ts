/** Owns the way of spans to a collector: OTLP over HTTP, in JSON. The address is the operator's, so that any is good. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import type { SpanExporter } from '@opentelemetry/sdk-trace'

/** Ms for one batch, all tries together. */
const within = 8_000

/** `endpoint`: without the path of traces. */
export const createOtlpExporter = (endpoint: string, headers: Readonly<Record<string, string>>): SpanExporter =>
  new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: within,
    concurrencyLimit: 1,
  })
