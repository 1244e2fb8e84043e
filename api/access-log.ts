/** Owns one line per answer, for operators who log at `info`: what was asked, by request id, and how long it took. Queries may name people and stay out. */
import type { Clock } from '../model/clock.ts'
import type { Log } from '../model/log.ts'
import { histograms, labelOf, noTelemetry, type Telemetry } from '../model/telemetry.ts'
import type { ApiEnv } from './deps.ts'

const maxPath = 300

type Deps = { readonly log: Log; readonly clock: Clock; readonly telemetry?: Telemetry }

const { method: methods, status: statuses } = histograms['api.request'].labels

/** `began`: when the request came. */
export function createAccessLog({ log, clock, telemetry = noTelemetry }: Deps) {
  return (request: Request, { info, requestId }: ApiEnv['Bindings'], began: number, status: number): void => {
    const method = labelOf(methods, request.method)
    telemetry.observe('api.request', Math.max(0, clock.now() - began), {
      method,
      status: labelOf(statuses, `${status}`),
    })
    log.info('request answered', {
      requestId,
      method: request.method,
      path: loggedPathOf(request.url),
      status,
      durationMs: clock.now() - began,
      personal: { remoteAddress: info.remoteAddress },
    })
  }
}

/** Behind them stands a secret. */
const secretPaths = ['/invitations/', '/enter/']

export function loggedPathOf(url: string): string {
  const path = pathOf(url)
  const secret = secretPaths.find((one) => path.startsWith(one))
  return secret === undefined ? path : `${secret}…`
}

function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return url.slice(start, query < 0 ? start + maxPath : Math.min(query, start + maxPath))
}
