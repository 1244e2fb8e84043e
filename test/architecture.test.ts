/**
 * The table of imports, and the house rules a machine can see. The rules are one pure function over paths and sources, so that they prove
 * themselves on bad examples before they are believed about the repository. A type-only import is an import.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'tap'
import { maskedOf } from './masked-source.ts'

type Sources = ReadonlyMap<string, string>
type Import = {
  readonly from: string
  readonly specifier: string
  readonly target: string | null
  /** Of an import statement what stands in front of the specifier. */
  readonly clause: string
}

const maxLines = 350
const bannedWords = ['manager', 'service', 'helper', 'util', 'utils', 'common', 'base', 'data', 'info', 'index']

const engine = ['model', 'media', 'voice/script', 'voice/english', 'voice/engines', 'voice/engines/hosted']
const belowTools = [
  'model',
  'net',
  'media',
  'store',
  'voice',
  'gateway',
  'sip',
  'actors',
  'api',
  'mcp',
  'console',
  'telemetry',
]

/**
 * What each unit may import besides itself. A unit is a folder; of voice the folder below, and of its engines each one. A row may name a folder
 * of several units. Five floors: model and net, media and store, the edges with voice and actors, app, tools.
 */
const mayImport: Readonly<Record<string, readonly string[] | 'everything'>> = {
  model: [],
  net: ['model'],
  media: ['model', 'net'],
  store: ['model', 'net'],
  'voice/english': ['model'],
  'voice/script': ['model', 'voice/english'],
  // An extractor asks the same kind of endpoint as the chat of the cascade.
  'voice/extraction': ['model', 'voice/script', 'voice/english', 'voice/engines/cascade'],
  'voice/engines': ['model', 'media', 'voice/script', 'voice/english'],
  'voice/engines/hosted': ['model', 'media', 'voice/script', 'voice/english', 'voice/engines'],
  'voice/engines/embedded': engine,
  'voice/engines/cascade': engine,
  'voice/engines/gemini-live': engine,
  'voice/engines/openai-realtime': engine,
  sdk: [],
  // The page stands on the browser SDK.
  gateway: ['model', 'net', 'media', 'sdk'],
  sip: ['model', 'net', 'media'],
  actors: ['model', 'net', 'media', 'store'],
  api: ['model', 'net', 'store'],
  mcp: ['model', 'net', 'store'],
  console: [],
  telemetry: ['model', 'net'],
  app: belowTools,
  tools: ['app', ...belowTools],
  test: 'everything',
}

/** Packages of which a change of mind must cost one folder. */
const ownersOf: Readonly<Record<string, readonly string[]>> = {
  '@modelcontextprotocol/server': ['mcp/'],
  'uWebSockets.js': ['gateway/listener/'],
  ws: ['gateway/', 'voice/engines/', 'tools/callers/', 'tools/doctor/'],
  werift: ['gateway/werift/'],
  'drachtio-srf': ['sip/'],
  'fetch-to-node': ['mcp/oauth/'],
  'libphonenumber-js': ['net/numbering-plans.ts', 'net/read-number.ts'],
  mammoth: ['actors/documents/read-docx.ts'],
  nats: ['actors/bus/nats-bus.ts'],
  aws4fetch: ['store/recording-bucket.ts'],
  'oidc-provider': ['mcp/oauth/'],
  postgres: ['store/'],
  'prom-client': ['telemetry/metrics/'],
  yaml: ['tools/simulate/'],
  '@opentelemetry/api': ['telemetry/traces/'],
  '@opentelemetry/exporter-trace-otlp-http': ['telemetry/traces/otlp-exporter.ts'],
  '@opentelemetry/resources': ['telemetry/traces/'],
  '@opentelemetry/sdk-trace': ['telemetry/traces/'],
  unpdf: ['actors/documents/read-pdf.ts'],
}

function violationsOf(sources: Sources): string[] {
  const files = [...sources].map(([file, source]) => ({ file, source, code: maskedOf(source) }))
  const imports = files.flatMap(({ file, source, code }) => importsOf(file, source, code))
  return [
    ...imports.flatMap(unitViolations),
    ...imports.flatMap(packageViolations),
    ...imports.flatMap(environmentViolations),
    ...cyclesOf(imports),
    ...files.flatMap(({ file, source, code }) => [
      ...nameViolations(file),
      ...lengthViolations(file, source),
      ...codeViolations(file, code),
    ]),
  ].toSorted()
}

const unitOf = (file: string): string =>
  /^voice\/engines\/[^/]+(?=\/)|^voice\/[^/]+(?=\/)|^[^/]+(?=\/)/.exec(file)?.[0] ?? ''

const packageOf = (specifier: string): string => /^@[^/]+\/[^/]+|^[^/]+/.exec(specifier)?.[0] ?? specifier

function unitViolations({ from, target }: Import): string[] {
  if (target === null) return []
  const [unit, wanted] = [unitOf(from), unitOf(target)]
  const allowed = mayImport[unit]
  if (!allowed) return [`${from}: no rule for the folder ${JSON.stringify(unit)}`]
  if (allowed === 'everything' || unit === wanted) return []
  if (allowed.some((row) => wanted === row || (row === 'voice' && wanted.startsWith('voice/')))) return []
  return [`${from}: ${unit} must not import ${target}`]
}

function packageViolations({ from, specifier, target }: Import): string[] {
  if (target !== null || unitOf(from) === 'test') return []
  const name = packageOf(specifier)
  if (unitOf(from) === 'model' && name !== 'zod') return [`${from}: model imports zod only, not ${specifier}`]
  const owners = ownersOf[name]
  if (!owners || owners.some((owner) => from.startsWith(owner))) return []
  return [`${from}: ${name} is imported by ${owners.join(' and ')} only`]
}

const environmentRule = 'process.env is read in app/config.ts only'

const mayReadEnvironment = (file: string): boolean => file === 'app/config.ts' || unitOf(file) === 'test'

/** What is taken from the module must be seen to be something else: `process` by its own name, or members that are not `env`. */
function environmentViolations({ from, specifier, clause }: Import): string[] {
  if (!/^(?:node:)?process$/.test(specifier) || mayReadEnvironment(from)) return []
  const isHarmless = /\bimport\s+(?:process|\{(?![^}]*\b(?:env|default)\b)[^}]*\})\s+from\s*$/.test(clause)
  return isHarmless ? [] : [`${from}: ${environmentRule}`]
}

function nameViolations(file: string): string[] {
  const words = path.posix.basename(file).toLowerCase().split(/[-_.]/)
  const banned = words.filter((word) => bannedWords.includes(word))
  return banned.map((word) => `${file}: "${word}" says nothing about what the file owns`)
}

function lengthViolations(file: string, source: string): string[] {
  const lines = source.trimEnd().split('\n').length
  return lines <= maxLines || unitOf(file) === 'test' ? [] : [`${file}: ${lines} lines, at most ${maxLines}`]
}

function codeViolations(file: string, code: string): string[] {
  const unit = unitOf(file)
  const found: string[] = []
  const says = (rule: string, shape: RegExp): void => {
    if (shape.test(code)) found.push(`${file}: ${rule}`)
  }
  // A declaration file repeats the shape of somebody else's package, and the linter takes its rules from a default export.
  if (!file.endsWith('.d.ts') && !file.startsWith('test/lint/'))
    says('no default exports', /\bexport\s+default\b|\bas\s+default\b\s*[,}]/)
  if (unit === 'test') return found
  // As a member, by a computed name, taken apart, and hidden behind another name.
  if (!mayReadEnvironment(file))
    says(
      environmentRule,
      /\bprocess\s*(?:\?\.|\.)\s*env\b|\bprocess\s*(?:\?\.)?\s*\[|\benv\b[^;]*\}\s*=\s*process\b|(?:(?<!\}\s*)=|[(,])\s*process\s*(?=[;,)\n]|$)/,
    )
  if (unit !== 'tools' && unit !== 'console') says('no console outside tools', /\bconsole\s*(\?\.|\.)/)
  says('what is imported must be readable: no computed import', /\bimport\s*\((?!\s*['"])/)
  return found
}

/** Each ring of imports once, as the path that closes it. */
function cyclesOf(imports: readonly Import[]): string[] {
  const edges = Map.groupBy(imports, ({ from }) => from)
  const finished = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, trail: readonly string[]): void => {
    if (trail.includes(file)) cycles.push(`cycle: ${[...trail.slice(trail.indexOf(file)), file].join(' → ')}`)
    if (trail.includes(file) || finished.has(file)) return
    for (const { target } of edges.get(file) ?? []) if (target !== null) visit(target, [...trail, file])
    finished.add(file)
  }
  for (const file of edges.keys()) visit(file, [])
  return cycles
}

const statements = /(?:^|[;\n}])[^\S\n]*(?:import|export)\b[^'"`;()=]*?\bfrom\s*(?=['"])/g
const sideEffects = /(?:^|[;\n}])[^\S\n]*import\s*(?=['"])/g
const calls = /\b(?:import|require|require\.resolve|import\.meta\.resolve)\s*\(\s*(?=['"])/g

/** `code` is `source` with comments and the contents of strings masked, so what looks like an import is one. */
function importsOf(from: string, source: string, code: string): Import[] {
  const clauses = [statements, sideEffects, calls].flatMap((shape) =>
    [...code.matchAll(shape)].map((match) => [match.index + match[0].length, match[0]] as const),
  )
  return [...new Map(clauses)].map(([start, clause]) => {
    const specifier = source.slice(start + 1, code.indexOf(code.charAt(start), start + 1))
    const isRelative = specifier.startsWith('.')
    const target = isRelative ? path.posix.join(path.posix.dirname(from), specifier) : null
    return { from, specifier, target, clause }
  })
}

const root = path.resolve(import.meta.dirname, '..')

function repository(): Sources {
  const skipped = new Set(['node_modules', '.git', '.data', '.tap'])
  const found = readdirSync(root, { withFileTypes: true, recursive: false })
    .filter((entry) => !skipped.has(entry.name))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(entry.name) : [entry.name]))
    .filter((file) => /\.[cm]?[jt]sx?$/.test(file))
  return new Map(found.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]))
}

const filesBelow = (folder: string): string[] =>
  readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'))

const examples: Readonly<
  Record<string, { readonly good: Record<string, string>; readonly bad: Record<string, string> }>
> = {
  'model imports zod and itself only': {
    good: { 'model/a.ts': "import { z } from 'zod'\nimport type { B } from './b.ts'", 'model/b.ts': '' },
    bad: { 'model/a.ts': "import { readFile } from 'node:fs'" },
  },
  'everybody may import model, and model nobody': {
    good: { 'store/a.ts': "import { x } from '../model/x.ts'" },
    bad: { 'model/a.ts': "import type { Row } from '../store/row.ts'" },
  },
  'an edge imports no other edge': {
    good: { 'gateway/a.ts': "import { chain } from '../media/leg/chain.ts'" },
    bad: { 'gateway/a.ts': "import { dial } from '../sip/dial.ts'" },
  },
  'an edge imports no actors, not even their types': {
    good: { 'api/a.ts': "import type { Sql } from '../store/sql.ts'" },
    bad: { 'api/a.ts': "import type { Actor } from '../actors/actor.ts'" },
  },
  'actors get engines injected': {
    good: { 'actors/a.ts': "import { frames } from '../media/leg/frames.ts'" },
    bad: { 'actors/a.ts': "export { engine } from '../voice/engines/embedded/engine.ts'" },
  },
  'sound knows no engine': {
    good: { 'voice/engines/cascade/a.ts': "import '../../../media/recording/wav.ts'" },
    bad: { 'media/leg/a.ts': "import '../../voice/engines/cascade/engine.ts'" },
  },
  'an engine knows no other engine': {
    good: { 'voice/engines/cascade/a.ts': "import '../hosted/talk.ts'" },
    bad: { 'voice/engines/cascade/a.ts': "import '../embedded/engine.ts'" },
  },
  'the language of scripts knows no engine': {
    good: { 'voice/engines/embedded/a.ts': "import '../../script/script.ts'" },
    bad: { 'voice/script/a.ts': "import '../engines/embedded/grammar.ts'" },
  },
  'what edges share knows neither sound nor edges': {
    good: { 'media/rtp/a.ts': "import '../../net/addresses.ts'" },
    bad: { 'net/a.ts': "import '../media/rtp/b.ts'" },
  },
  'nobody imports app': {
    good: { 'tools/start/start.ts': "import { listen } from '../gateway/listener/listen.ts'" },
    bad: { 'store/a.ts': "const { config } = await import('../app/config.ts')" },
  },
  'product code imports no tests': {
    good: { 'test/a.test.ts': "import { x } from '../app/x.ts'" },
    bad: { 'app/a.ts': "import { clock } from '../test/fake/clock.ts'" },
  },
  'every folder has a rule': {
    good: { 'mcp/a.ts': "import './b.ts'", 'mcp/b.ts': '' },
    bad: { 'lib/a.ts': "import './b.ts'" },
  },
  'there are no cycles': {
    good: { 'store/a.ts': "import './b.ts'\nimport './c.ts'", 'store/b.ts': "import './c.ts'", 'store/c.ts': '' },
    bad: {
      'store/a.ts': "import type { B } from './b.ts'",
      'store/b.ts': "import './c.ts'",
      'store/c.ts': "import './a.ts'",
    },
  },
  'a driver is imported where it belongs': {
    good: {
      'gateway/listener/a.ts': "type Uws = typeof import('uWebSockets.js')",
      'store/sql.ts': "import postgres from 'postgres'",
      'actors/bus/nats-bus.ts': "import type { Msg } from 'nats'",
      'gateway/werift/a.ts': "import {\n  RTCPeerConnection,\n} from 'werift/lib/x.js'",
    },
    bad: { 'actors/jobs.ts': "import type { Sql } from 'postgres'" },
  },
  'a deep import is an import of its package': {
    good: { 'sip/a.ts': "import Srf from 'drachtio-srf'" },
    bad: { 'gateway/a.ts': 'import { x } from "werift/lib/index.js"' },
  },
  'a dynamic import counts': {
    good: { 'actors/bus/nats-bus.ts': "const nats = await import('nats')" },
    bad: { 'actors/bus/other.ts': "const nats = await import(\n  'nats'\n)" },
  },
  'a computed import hides what it imports': {
    good: { 'app/a.ts': "await import('./b.ts')" },
    bad: { 'app/a.ts': 'await import(name)' },
  },
  'process.env is read in one file': {
    good: {
      'app/config.ts': 'export const env = process.env',
      'api/a.ts': "// process.env\nconst text = 'process.env'",
    },
    bad: { 'tools/start/start.ts': 'const port = Number(process.env.PORT)' },
  },
  'process.env is not taken apart either': {
    good: { 'api/a.ts': 'const { pid } = process' },
    bad: { 'api/a.ts': 'const { env } = process' },
  },
  'process.env is not imported either': {
    good: {
      'api/a.ts': "import process from 'node:process'\nimport { argv, stdin } from 'node:process'\nprocess.exit(0)",
    },
    bad: { 'gateway/listener/a.ts': "import { env } from 'node:process'\nenv['SIZE'] ??= String(16)" },
  },
  'process.env is not imported by another name': {
    good: { 'app/config.ts': "import { env as variables } from 'node:process'" },
    bad: { 'api/a.ts': "import * as host from 'process'\nhost.env" },
  },
  'process.env is not imported by a call': {
    good: { 'test/a.ts': "const { env } = await import('node:process')" },
    bad: { 'api/a.ts': "const { env } = await import('node:process')" },
  },
  'process.env is not read by a computed name': {
    good: { 'api/a.ts': "const names = ['process', 'env']\nconst processes = [1]\nprocesses[0]" },
    bad: { 'api/a.ts': "process['env']" },
  },
  'process has no other name': {
    good: { 'api/a.ts': 'const used = process.memoryUsage()\nlisten(process.pid, process.stdout)' },
    bad: { 'api/a.ts': 'const host = process\nhost.env' },
  },
  'console is for tools and tests': {
    good: { 'tools/start/start.ts': "console.log('listening')", 'store/a.ts': 'const re = /console.log/' },
    bad: { 'store/a.ts': 'const text = `${console.log(1)}`' },
  },
  'exports have names': {
    good: { 'api/a.ts': "export const text = 'export default'" },
    bad: { 'api/a.ts': 'const x = 1\nexport { x as default }' },
  },
  'nothing is the default': { good: {}, bad: { 'test/a.ts': 'export default function run() {}' } },
  'a file has at most 350 lines': {
    good: { 'api/a.ts': '//\n'.repeat(350), 'test/a.test.ts': '//\n'.repeat(900) },
    bad: { 'api/a.ts': '//\n'.repeat(351) },
  },
  'names say what a file owns': {
    good: { 'api/place-call.ts': '', 'store/database.ts': '' },
    bad: { 'api/call-helper.ts': '' },
  },
  'there are no barrels': { good: {}, bad: { 'media/leg/index.ts': '' } },
  'what only looks like an import is none': {
    good: {
      'store/a.ts': [
        "// import { x } from '../app/x.ts'",
        '/* import "../app/x.ts" */',
        "const text = `\nimport '../app/x.ts'\n${1}\nimport '../app/y.ts'`",
        'const shape = /["\'`]/',
        'const quote = "\\"import \'../app/z.ts\'"',
        'const half = 4 / 2 / 1',
      ].join('\n'),
    },
    bad: { 'store/a.ts': "const shape = /[\"'/]/\nconst a = b / 2\nimport '../app/x.ts'" },
  },
}

for (const [name, { good, bad }] of Object.entries(examples)) {
  test(`the rules see it: ${name}`, (t) => {
    t.same(violationsOf(new Map(Object.entries(good))), [])
    t.equal(violationsOf(new Map(Object.entries(bad))).length, 1, violationsOf(new Map(Object.entries(bad))).join('; '))
    t.end()
  })
}

test('the repository keeps the table of imports and the house rules', (t) => {
  const sources = repository()
  const imports = [...sources].flatMap(([file, source]) => importsOf(file, source, maskedOf(source)))
  t.ok(sources.size > 100, `${sources.size} files were read`)
  t.ok(imports.length > 2 * sources.size, `${imports.length} imports were found`)
  for (const unit of Object.keys(mayImport).filter((row) => row !== 'mcp' && row !== 'console'))
    t.ok(
      imports.some(({ from }) => unitOf(from) === unit),
      `${unit} was read`,
    )
  const missing = imports.filter(({ target }) => target !== null && !sources.has(target) && /\.[jt]s$/.test(target))
  t.same(missing, [], 'what is imported exists, so every relative import was understood')
  t.same(violationsOf(sources), [])
  t.end()
})

/** Packages that are there for a setting, or for the threads of the sound. */
const loadedOnDemand = ['werift', 'nodemailer', 'prom-client', '@opentelemetry/sdk-trace', 'nats', 'mammoth', 'unpdf']

test('a process loads what its settings ask for, and holds no memory for what nobody has set up', (t) => {
  const sources = repository()
  const loaded = new Set<string>()
  const load = (file: string): void => {
    const source = sources.get(file)
    if (source === undefined || loaded.has(file)) return
    loaded.add(file)
    for (const { specifier, target, clause } of importsOf(file, source, maskedOf(source))) {
      if (/\(\s*$/.test(clause) || /\b(?:import|export)\s+type\b/.test(clause)) continue
      if (target === null) loaded.add(packageOf(specifier))
      else load(target)
    }
  }
  load('tools/start/start.ts')
  t.ok(loaded.has('app/parley.ts') && loaded.has('undici'), `${loaded.size} files and packages`)
  t.same(
    loadedOnDemand.filter((name) => loaded.has(name)),
    [],
  )
  t.end()
})

test('each migration has a number of its own', (t) => {
  const names = readdirSync(path.join(import.meta.dirname, '..', 'store', 'migrations'))
  const numbers = Map.groupBy(names, (name) => name.slice(0, 4))
  t.same(
    [...numbers.values()].filter((named) => named.length > 1),
    [],
  )
  t.end()
})

/** Colours in a style sheet that are none of the named ones. */
const coloursIn = (css: string): string[] =>
  css.match(/#[\da-f]{3,8}\b(?![^{;]*\{)|\b(?:rgb|hsl|oklch|oklab|lab|lch|hwb|light-dark)a?\(/gi) ?? []

test('colours stand once, in look/colours.css, and every one that a page names is there', (t) => {
  const files = ['look', 'console', 'gateway/client'].flatMap(filesBelow)
  const sheets = files.filter((file) => file.endsWith('.css'))
  t.same(coloursIn('a { color: #fff; } #added { margin: 0; } b { color: light-dark(red, blue); }'), [
    '#fff',
    'light-dark(',
  ])
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
  const named = new Set(
    [
      ...files
        .map(read)
        .join()
        .matchAll(/[\s'](--[a-z-]+)'?:/g),
    ].map(([, name]) => name),
  )
  t.ok(sheets.length > 5 && named.size > 15)
  for (const file of sheets) {
    if (!file.startsWith('look/')) t.same(coloursIn(read(file)), [], file)
    const unknown = [...read(file).matchAll(/var\((--[\w-]+)\)/g)].filter(([, name]) => !named.has(name))
    t.same(unknown, [], `${file} names what is there`)
  }
  t.end()
})
