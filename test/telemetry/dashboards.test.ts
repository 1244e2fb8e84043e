/** Dashboard and alerts ask for nothing that the service does not tell: names, labels, and values of labels. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { metricNames, type MetricDescription } from '../../telemetry/metrics/metric-names.ts'
import { processMetrics } from '../../telemetry/metrics/process-metrics.ts'
import { refusedMetric } from '../../telemetry/metrics/refused.ts'

const folder = path.join(import.meta.dirname, '..', '..', 'deploy', 'observability')
const read = (file: string): Promise<string> => readFile(path.join(folder, file), 'utf8')

const metrics = new Map<string, MetricDescription>(
  [
    ...Object.values(metricNames).flatMap((kind) => Object.values<MetricDescription>(kind)),
    ...Object.values(processMetrics),
    refusedMetric,
  ].flatMap((metric) => {
    const ends = metric.type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    return ends.map((end) => [metric.name + end, metric] as const)
  }),
)
/** Prometheus's own, of who was scraped. */
const ofScrape = ['instance', 'job', 'le']

/** What is wrong with an expression; an empty list for a good one. */
function flawsOf(expr: string): string[] {
  const named = [...expr.matchAll(/\b((?:parley|process|nodejs)_\w+|up\b)(?:\{([^}]*)\})?/g)]
  const ofNames = named.flatMap(([, name = '', matchers = '']) => {
    if (name === 'up') return []
    const metric = metrics.get(name)
    if (!metric) return [`there is no ${name}`]
    return [...matchers.matchAll(/(\w+)(=~|=|!=)"([^"]*)"/g)].flatMap(([, label = '', how, value = '']) => {
      if (ofScrape.includes(label)) return []
      const values = metric.labels[label]
      if (!values) return [`${name} has no label ${label}`]
      const wanted = how === '=~' ? value.split('|') : [value]
      return wanted.filter((one) => !values.includes(one)).map((one) => `${name}: ${label} is never ${one}`)
    })
  })
  const known = new Set([
    ...ofScrape,
    ...named.flatMap(([, name = '']) => Object.keys(metrics.get(name)?.labels ?? {})),
  ])
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/, */))
  return [
    ...(named.length === 0 ? ['it asks for nothing'] : []),
    ...ofNames,
    ...grouped.filter((label) => !known.has(label)).map((label) => `nothing here has the label ${label}`),
  ]
}

test('the judge of expressions sees what is wrong with one', (t) => {
  t.same(flawsOf('sum by (le, line) (rate(parley_leg_mos_bucket{instance=~"$instance",line="web"}[5m]))'), [])
  t.same(flawsOf('parley_leg_mos'), ['there is no parley_leg_mos'], 'a histogram has no series of its own name')
  t.same(flawsOf('parley_load_new_calls{state="full"}'), ['parley_load_new_calls: state is never full'])
  t.same(flawsOf('parley_load_new_calls{line="web"}'), ['parley_load_new_calls has no label line'])
  t.same(flawsOf('sum by (worker) (parley_calls_legs)'), ['nothing here has the label worker'])
  t.same(flawsOf('1 + 1'), ['it asks for nothing'])
  t.end()
})

type Panel = { readonly title: string; readonly type: string; readonly targets?: readonly { readonly expr: string }[] }

test('every expression of the dashboard is about what is told', async (t) => {
  const dashboard = JSON.parse(await read('grafana-dashboard.json')) as {
    readonly panels: readonly (Panel & { readonly id: number })[]
  }
  t.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  const shown = dashboard.panels.filter(({ type }) => type !== 'row')
  t.ok(shown.length > 20)
  for (const { title, targets = [] } of shown) {
    t.ok(targets.length > 0, title)
    for (const { expr } of targets) t.same(flawsOf(expr), [], `${title}: ${expr}`)
  }
})

test('every kind of trouble that is told is on the dashboard', async (t) => {
  const dashboard = await read('grafana-dashboard.json')
  const notShown = ['build', 'role', 'startTime', 'heapUsed', 'heapTotal', 'external', 'cpu']
  const needed = Object.values(metricNames).flatMap((kind) => Object.values<MetricDescription>(kind))
  const process = Object.entries(processMetrics).filter(([name]) => !notShown.includes(name))
  const missing = [...needed, ...process.map(([, metric]) => metric)]
    .map(({ name }) => name)
    .filter((name) => !dashboard.includes(name))
  t.same(missing, [
    'parley_leg_stranger_packets_total',
    'parley_turn_answer_seconds',
    'parley_turn_stage_seconds',
    'parley_calls_legs',
    'parley_load_new_calls',
  ])
})

type Rule = {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string }
}

test('every alert is about what is told, and says what it is', async (t) => {
  const { groups } = parse(await read('alerts.yaml')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[]
  }
  const rules = groups.flatMap((group) => group.rules)
  t.ok(rules.length > 10)
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  for (const { alert, expr, labels, annotations } of rules) {
    t.same(flawsOf(expr), [], `${alert}: ${expr}`)
    t.match(labels.severity, /^(critical|warning)$/)
    t.ok(annotations.summary.length > 20)
  }
})

test('what Prometheus scrapes beside compose is every process of it, where it listens on this machine', async (t) => {
  const { scrape_configs: jobs, rule_files: files } = parse(await read('prometheus.yaml')) as {
    readonly scrape_configs: readonly {
      readonly job_name: string
      readonly static_configs: readonly { readonly targets: readonly string[]; readonly labels: { process: string } }[]
    }[]
    readonly rule_files: readonly string[]
  }
  t.match(jobs, [{ job_name: 'parley', authorization: { credentials_file: '/run/secrets/metrics_token' } }])
  t.same(files, ['alerts.yaml'])
  const compose = parse(await readFile(path.join(folder, '..', '..', 'docker-compose.yml'), 'utf8'), {
    merge: true,
  }) as {
    readonly services: Readonly<
      Record<string, { readonly environment?: Readonly<Record<string, string>>; readonly ports?: readonly string[] }>
    >
  }
  const processes = Object.entries(compose.services).filter(([, { environment }]) => environment?.['ROLES'])
  const listens = processes.map(([name, { environment = {}, ports }]) => {
    const published = ports?.[0]?.replace(/:\d+$/, '')
    return `${name} ${published ?? `127.0.0.1:${environment['PORT']}`}`
  })
  const scraped = jobs.flatMap((job) =>
    job.static_configs.map(({ targets, labels }) => `${labels.process} ${targets[0]}`),
  )
  t.same(scraped.toSorted(), listens.toSorted())
  for (const [name, { environment }] of processes)
    t.equal(environment?.['METRICS_TOKEN_FILE'], '/run/secrets/metrics_token', name)
})
