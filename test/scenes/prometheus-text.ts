/**
 * Owns reading Prometheus's text format 0.0.4, strictly: what a server would refuse or guess at is refused here, so are the promises that a
 * format cannot make: each family is told of once and in one piece, a histogram's buckets grow, end with +Inf and agree with its count.
 */
export type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}
export type Family = { readonly type: string; readonly help: string; readonly samples: readonly Sample[] }

const header = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/
const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\+Inf|-Inf|NaN|[-+]?[0-9.]+(?:e[-+]?[0-9]+)?)$/
const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\n"])*)"(?:,|$)/

export function parsePrometheus(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>()
  let current = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const [, kind, name = '', words = ''] = header.exec(line) ?? []
    if (kind === 'HELP') {
      if (families.has(name)) throw new Error(`${name} is told of twice`)
      families.set(name, { type: '', help: words, samples: [] })
      current = name
    } else if (kind === 'TYPE') {
      if (name !== current || !/^(counter|gauge|histogram)$/.test(words)) throw new Error(`a type too many: ${line}`)
      families.get(name)!.type = words
    } else {
      const family = families.get(current) ?? fail(`a sample of nothing: ${line}`)
      family.samples.push(sampleOf(line, current))
    }
  }
  for (const [name, family] of families) judge(name, family)
  return families
}

const fail = (words: string): never => {
  throw new Error(words)
}

function sampleOf(line: string, family: string): Sample {
  const [, name = fail(`no sample: ${line}`), labels = '', value = ''] = sample.exec(line) ?? []
  if (name !== family && !['_bucket', '_sum', '_count'].some((end) => name === family + end))
    fail(`${name} stands among ${family}`)
  return { name, labels: labelsOf(labels), value: Number(value.replace('Inf', 'Infinity')) }
}

function labelsOf(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {}
  for (let rest = text; rest !== '';) {
    const [whole, name = '', value = ''] = label.exec(rest) ?? fail(`no labels: ${text}`)
    if (name in labels) fail(`${name} twice: ${text}`)
    labels[name] = value.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
    rest = rest.slice(whole.length)
  }
  return labels
}

const keyOf = ({ labels: { le: _, ...labels } }: Sample): string =>
  JSON.stringify(labels, Object.keys(labels).toSorted())

function judge(name: string, { type, samples }: Family): void {
  if (type === '') fail(`${name} has no type`)
  if (type === 'counter' && !name.endsWith('_total')) fail(`${name} is a counter by another name`)
  const seen = samples.map((one) => `${one.name} ${keyOf(one)} ${one.labels['le']}`)
  if (new Set(seen).size !== seen.length) fail(`${name}: a series twice`)
  if (type !== 'histogram') return
  for (const [key, series] of Map.groupBy(samples, keyOf)) {
    const counts = series.filter((one) => one.name === `${name}_bucket`).map(({ value }) => value)
    const limits = series.filter((one) => one.name === `${name}_bucket`).map(({ labels }) => labels['le'] ?? '')
    const count = series.find((one) => one.name === `${name}_count`)?.value
    if (limits.at(-1) !== '+Inf' || counts.at(-1) !== count) fail(`${name} ${key}: no end of its buckets`)
    if (counts.some((value, index) => value < (counts[index - 1] ?? 0))) fail(`${name} ${key}: a bucket shrinks`)
    if (!series.some((one) => one.name === `${name}_sum`)) fail(`${name} ${key}: no sum`)
  }
}

/** Of all series with these labels among theirs, the sum; of a histogram `name` ends with `_count` or `_sum`. */
export const totalOf = (families: ReadonlyMap<string, Family>, name: string, labels: Sample['labels'] = {}): number =>
  [...families.values()]
    .flatMap(({ samples }) => samples)
    .filter((one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0)
