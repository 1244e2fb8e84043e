/** Owns the settings of what the service tells of itself in numbers. */
import { z } from 'zod'
import { isLoopback } from '../../net/addresses.ts'
import { HttpUrl, nothingWithout, optional, Port, text, WrongSettings } from './setting.ts'

const Token = text.regex(/^[\x21-\x7e]{16,1000}$/, 'must be one word of printable ASCII, 16 characters or more')

/** Pairs like `authorization=Bearer%20x,x-tenant=1`, as OpenTelemetry has them. */
const Headers = text
  .max(8_000)
  .regex(
    /^[\w!#$%&'*+.^`|~-]+=[\x21-\x2b\x2d-\x7e]*(,\s*[\w!#$%&'*+.^`|~-]+=[\x21-\x2b\x2d-\x7e]*)*$/,
    'must read like name=value,other=value',
  )
  .refine((list) => headersOf(list) !== null, 'has a value that is not percent-encoded')

function headersOf(list: string): Readonly<Record<string, string>> | null {
  try {
    return Object.fromEntries(
      list.split(',').map((pair) => {
        const at = pair.indexOf('=')
        return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1))]
      }),
    )
  } catch {
    return null
  }
}

export const telemetrySettings = z.object({
  METRICS_PORT: optional(Port),
  METRICS_HOST: optional(text),
  METRICS_TOKEN: optional(Token),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(HttpUrl),
  OTEL_EXPORTER_OTLP_HEADERS: optional(Headers),
  OTEL_SERVICE_NAME: text.regex(/^[\w.:/-]{1,200}$/, 'must be a name without spaces').default('parley'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
})

type Settings = z.infer<typeof telemetrySettings>

export const telemetryOf = (settings: Settings) => ({ metrics: metricsOf(settings), traces: tracesOf(settings) })

/** Null: nobody is told. */
function tracesOf({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_HEADERS,
  OTEL_SERVICE_NAME: serviceName,
  OTEL_TRACES_SAMPLER_ARG: ratio,
}: Settings) {
  if (endpoint === null) return nothingWithout('OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_HEADERS })
  const headers = OTEL_EXPORTER_OTLP_HEADERS === null ? {} : (headersOf(OTEL_EXPORTER_OTLP_HEADERS) ?? {})
  return { endpoint, headers, serviceName, ratio }
}

/** Null: nobody is told. Throws WrongSettings where everybody would be. */
function metricsOf({ METRICS_PORT, METRICS_HOST, METRICS_TOKEN: token }: Settings) {
  if (METRICS_PORT === null) {
    nothingWithout('METRICS_PORT', { METRICS_HOST })
    return token === null ? null : { listens: null, token }
  }
  const host = METRICS_HOST ?? '127.0.0.1'
  if (token === null && host !== 'localhost' && !isLoopback(host))
    throw new WrongSettings('METRICS_HOST opens the metrics to other machines: set METRICS_TOKEN as well')
  return { listens: { host, port: METRICS_PORT }, token }
}
