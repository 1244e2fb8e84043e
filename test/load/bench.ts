/** Owns `npm run bench <name>`: which benches there are. They measure; nothing in them passes or fails. */
import process from 'node:process'

type Bench = (given: readonly string[]) => Promise<void>

/** Each is loaded by itself: of an older state (`bench pair`) those can be run that find what they need there. */
const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  admission: async () => (await import('./admission-bench.ts')).benchAdmission,
  after: async () => (await import('./after-bench.ts')).benchAfter,
  all: async () => (await import('./all-bench.ts')).benchAll,
  api: async () => (await import('./api-bench.ts')).benchApi,
  console: async () => (await import('./console-bench.ts')).benchConsole,
  echo: async () => (await import('./echo-bench.ts')).benchEcho,
  growth: async () => (await import('./growth-bench.ts')).benchGrowth,
  burst: async () => (await import('./burst-bench.ts')).benchBurst,
  mcp: async () => (await import('./mcp-bench.ts')).benchMcp,
  memory: async () => (await import('./memory-bench.ts')).benchMemory,
  opus: async () => (await import('./opus-bench.ts')).benchOpus,
  pair: async () => (await import('./pair-bench.ts')).benchPair,
  profile: async () => (await import('./profile-bench.ts')).benchProfile,
  setup: async () => (await import('./setup-bench.ts')).benchSetup,
  sip: async () => (await import('./sip-bench.ts')).benchSip,
  steps: async () => (await import('./step-bench.ts')).benchSteps,
  start: async () => (await import('./start-bench.ts')).benchStart,
  turns: async () => (await import('./turns-bench.ts')).benchTurns,
  voice: async () => (await import('./voice-bench.ts')).benchVoice,
  web: async () => (await import('./web-bench.ts')).benchWeb,
  webhooks: async () => (await import('./webhook-bench.ts')).benchWebhooks,
}

const [name = '', ...given] = process.argv.slice(2)
const bench = benches[name]
if (bench) await (await bench())(given)
else {
  console.log(
    `usage: npm run bench <${Object.keys(benches).join(' | ')}> [number of calls … | seconds of a round | section]`,
  )
  process.exitCode = name === '' ? 0 : 2
}
