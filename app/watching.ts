/** Owns the wiring of what the service tells of itself: to whom, and where they ask. Without settings nothing is gathered. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { toldNobody } from '../actors/call/life/call-telling.ts'
import { listen } from '../gateway/listener/listen.ts'
import type { Fetch } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import { gauges as gaugeInstruments, noGauges, noTelemetry, type Gauges, type Telemetry } from '../model/telemetry.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { createDatabaseAnswers } from '../store/database-answers.ts'
import { countDueJobs, countWaitingDeliveries } from '../store/queue-depths.ts'
import { joinTelemetry } from '../telemetry/join-telemetry.ts'
import { createMetricsAnswer, metricsPath, refusalOf } from '../telemetry/metrics/metrics-answer.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { Traces } from '../telemetry/traces/traces.ts'
import type { CallSide } from './call-side.ts'
import { now, systemClock as clock } from './clock.ts'
import { presetVariable, type Config } from './config.ts'
import type { Core } from './core.ts'
import { atMetricsPort } from './failing-places.ts'
import type { MediaSide } from './media-side.ts'

export type Watching = {
  readonly telemetry: Telemetry
  readonly gauges: Gauges
  /** Of parts that are opened after those which tell: they are read from now on. */
  watch(parts: Watched): void
  /** Opens the metrics' own door, if they have one, and gives what the front door answers besides: null to whatever is not for it. */
  open(guard: FailureGuard, closing: AsyncDisposableStack): Promise<Beside>
}

type Beside = { readonly port: number | null; answer(request: Request): Fetch | null }

type Watched = {
  readonly core: Pick<Core, 'sql' | 'queries' | 'clock' | 'telling'>
  readonly calls: Pick<CallSide, 'newCalls'>
  readonly media: Pick<MediaSide, 'count' | 'loops'>
}

const nothingBeside: Beside = { port: null, answer: () => null }

const unwatched: Watching = {
  telemetry: noTelemetry,
  gauges: noGauges,
  watch: () => undefined,
  open: async () => nothingBeside,
}

export async function openWatching(config: Config, log: Log, closing: AsyncDisposableStack): Promise<Watching> {
  const metrics = await openMetrics(config, closing)
  if (config.traces === null) return metrics
  const traces = await openTraces({ ...config, traces: config.traces }, metrics.telemetry, log)
  closing.defer(() => traces.close())
  return { ...metrics, telemetry: joinTelemetry(metrics.telemetry, traces.telemetry) }
}

type Traced = Pick<Config, 'logsPersonal' | 'roles'> & { readonly traces: NonNullable<Config['traces']> }

/** Its packages are loaded where somebody traces: they are 9 MB. */
async function openTraces({ traces, logsPersonal, roles }: Traced, numbers: Telemetry, log: Log): Promise<Traces> {
  const { createOtlpExporter } = await import('../telemetry/traces/otlp-exporter.ts')
  const { createTraces } = await import('../telemetry/traces/traces.ts')
  const { endpoint, headers, serviceName, ratio } = traces
  return createTraces({
    exporter: createOtlpExporter(endpoint, headers),
    clock,
    log,
    ratio,
    tellsPersonal: logsPersonal,
    count: (result, spans) => numbers.count('trace.spans', { result }, spans),
    resource: {
      'service.name': serviceName,
      'service.version': versionOfProgram(),
      'service.instance.id': randomUUID(),
      'parley.roles': [...roles].join(','),
    },
  })
}

async function openMetrics({ metrics: settings, roles }: Config, closing: AsyncDisposableStack): Promise<Watching> {
  if (settings === null) return unwatched
  const { createMetrics } = await import('../telemetry/metrics/metrics.ts')
  const metrics = createMetrics({ version: versionOfProgram(), roles, startedAt: clock.now(), now, clock })
  closing.defer(async () => metrics.close())
  return {
    telemetry: metrics.telemetry,
    gauges: metrics.gauges,
    watch(parts) {
      watchParts(metrics, parts)
      // Rows are everybody's: those who work on them tell of them.
      if (roles.has('actors')) watchQueues(metrics, parts)
    },
    async open(guard, until) {
      const answer = createMetricsAnswer({ metrics, token: settings.token, guard })
      if (settings.listens !== null) return { ...nothingBeside, port: await openDoor(settings.listens, answer, until) }
      return { port: null, answer: (request) => (pathOf(request) === metricsPath ? answer : null) }
    },
  }
}

const pathOf = ({ url }: Request): string => new URL(url).pathname

function watchParts({ gauges, watchLoops }: Metrics, { core, calls, media }: Watched): void {
  const { queries, telling = toldNobody } = core
  const answers = createDatabaseAnswers(core.sql, core.clock)
  gauges.watch('db.up', async () => [{ labels: {}, value: (await answers()) ? 1 : 0 }])
  gauges.watch('calls.running', telling.running)
  gauges.watch('calls.legs', () => {
    const { calls: old, fresh } = media.count()
    return [{ labels: {}, value: old + fresh }]
  })
  gauges.watch('load.new_calls', () => {
    const current = calls.newCalls()
    return (['taken', 'limited', 'refused'] as const).map((state) => ({
      labels: { state },
      value: state === current ? 1 : 0,
    }))
  })
  if (queries)
    gauges.watch('db.queries', () =>
      (['calls', 'requests'] as const).map((pool) => ({ labels: { pool }, value: queries[pool].underWay })),
    )
  watchLoops(media.loops)
}

function watchQueues({ gauges }: Metrics, { core }: Watched): void {
  const { sql, telling = toldNobody } = core
  gauges.watch('steps.waiting', () => {
    const unwritten = telling.unwritten()
    return (['memory', 'disk'] as const).map((where) => ({ labels: { where }, value: unwritten[where] }))
  })
  gauges.watch('jobs.due', async () => {
    const due = new Map((await countDueJobs(sql, core.clock.now())).map((of) => [of.kind, of.due]))
    return gaugeInstruments['jobs.due'].labels.kind.map((kind) => ({ labels: { kind }, value: due.get(kind) ?? 0 }))
  })
  gauges.watch('deliveries.waiting', async () => [{ labels: {}, value: await countWaitingDeliveries(sql) }])
}

/** Those who scrape are few; nobody else takes the places of calls. */
const maxConnections = 64
const requestTimeout = 10_000

async function openDoor(
  { host, port }: { readonly host: string; readonly port: number },
  answer: Fetch,
  closing: AsyncDisposableStack,
): Promise<number> {
  const listener = await atMetricsPort({ host, port }, () =>
    listen({
      host,
      port,
      tls: null,
      driver: 'node',
      presetVariable,
      maxBodyBytes: 0,
      requestTimeout,
      maxConnections,
      maxConnectionsPerAddress: maxConnections,
      clock,
      fetch: async (request, peer) => (pathOf(request) === metricsPath ? answer(request, peer) : refusalOf(404)),
      tooLarge: () => refusalOf(405, { allow: 'GET, HEAD' }),
      sockets: {},
    }),
  )
  closing.defer(() => listener.close(0))
  return listener.port
}

function versionOfProgram(): string {
  const file = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(file) as { readonly version?: unknown }).version)
}
