/** Owns the settings of what the service tells of itself in numbers. */
import { z } from 'zod'
import { isLoopback } from '../../net/addresses.ts'
import { nothingWithout, optional, Port, text, WrongSettings } from './setting.ts'

const Token = text.regex(/^[\x21-\x7e]{16,1000}$/, 'must be one word of printable ASCII, 16 characters or more')

export const telemetrySettings = z.object({
  METRICS_PORT: optional(Port),
  METRICS_HOST: optional(text),
  METRICS_TOKEN: optional(Token),
})

type Settings = z.infer<typeof telemetrySettings>

export const telemetryOf = (settings: Settings) => ({ metrics: metricsOf(settings) })

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
