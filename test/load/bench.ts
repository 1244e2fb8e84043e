/** Owns `npm run bench <name>`: which benches there are. They measure; nothing in them passes or fails. */
import process from 'node:process'
import { benchAdmission } from './admission-bench.ts'
import { benchAfter } from './after-bench.ts'
import { benchApi } from './api-bench.ts'
import { benchEcho } from './echo-bench.ts'
import { benchGrowth } from './growth-bench.ts'
import { benchBurst } from './burst-bench.ts'
import { benchMcp } from './mcp-bench.ts'
import { benchMemory } from './memory-bench.ts'
import { benchOpus } from './opus-bench.ts'
import { benchPair } from './pair-bench.ts'
import { benchProfile } from './profile-bench.ts'
import { benchSetup } from './setup-bench.ts'
import { benchSip } from './sip-bench.ts'
import { benchSteps } from './step-bench.ts'
import { benchStart } from './start-bench.ts'
import { benchTurns } from './turns-bench.ts'
import { benchVoice } from './voice-bench.ts'
import { benchWeb } from './web-bench.ts'
import { benchWebhooks } from './webhook-bench.ts'

const benches: Readonly<Record<string, (given: readonly string[]) => Promise<void>>> = {
  admission: benchAdmission,
  after: benchAfter,
  api: benchApi,
  echo: benchEcho,
  growth: benchGrowth,
  burst: benchBurst,
  mcp: benchMcp,
  memory: benchMemory,
  opus: benchOpus,
  pair: benchPair,
  profile: benchProfile,
  setup: benchSetup,
  sip: benchSip,
  steps: benchSteps,
  start: benchStart,
  turns: benchTurns,
  voice: benchVoice,
  web: benchWeb,
  webhooks: benchWebhooks,
}

const [name = '', ...given] = process.argv.slice(2)
const bench = benches[name]
if (bench) await bench(given)
else {
  console.log(
    `usage: npm run bench <${Object.keys(benches).join(' | ')}> [number of calls … | seconds of a round | section]`,
  )
  process.exitCode = 2
}
