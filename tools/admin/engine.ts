/** Owns the commands of voice engines: which are set up here, and whether one of them works. */
import { LlmProvider } from '../../model/worker.ts'
import { Problem } from '../../model/problem.ts'
import { checkLinesOf, checkSummaryOf, type CheckReport } from '../check-lines.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { readConfig, readEnvironment, type Config } from '../../app/config.ts'
import { newId } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { print, required, type Commands } from './command.ts'
import { examineEngine, type EngineSettings } from './examine-engine.ts'

const nameWidth = 40
const providerWidth = 18

export const engineCommands: Commands = {
  'engine list': {
    usage: 'engine list',
    async run() {
      const { providersOf } = await openVoiceSide()
      const { voice } = readConfig(readEnvironment())
      const there = providersOf(voice)
      for (const [index, provider] of there.entries())
        print(`${index + 1}. ${provider.padEnd(providerWidth)} ${summaryOf(provider, voice)}`)
      for (const provider of LlmProvider.options)
        if (!there.includes(provider)) print(`–  ${provider.padEnd(providerWidth)} not set up: ${missingOf(provider)}`)
      return 0
    },
  },
  'engine check': {
    usage: 'engine check <provider>',
    async run([given]) {
      const { openEngine } = await openVoiceSide()
      const provider = providerOf(required(given, 'provider'))
      const { voice, logLevel, logsPersonal } = readConfig(readEnvironment())
      const engine = await openEngine(provider, voice, { log: createLog(logLevel, logsPersonal), clock })
      if (!engine) throw new Problem('VALIDATION_FAILED', `${provider} is not set up: ${missingOf(provider)}`)
      // Timers of the clock keep no process alive, and some engines have no socket.
      const alive = setInterval(() => undefined, 60_000)
      try {
        const { addresses, settings, secrets } = placeOf(provider, voice)
        const checks = examineEngine({ engine, addresses, settings, callId: newId<'call'>(), clock })
        return await told(checks, secrets)
      } finally {
        clearInterval(alive)
        await engine.close()
      }
    },
  },
}

/** The engines are heavy, and no other command needs them. */
const openVoiceSide = () => import('../../app/voice-side.ts')

/** A provider may repeat what it was given: no key is printed. */
async function told(checks: AsyncIterable<CheckReport>, secrets: readonly string[]): Promise<number> {
  const all: CheckReport[] = []
  for await (const check of checks) {
    all.push(check)
    const got = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), check.got)
    for (const line of checkLinesOf({ ...check, got }, nameWidth)) print(line)
  }
  const isBroken = all.some(({ verdict }) => verdict === 'failed')
  print(`\n${checkSummaryOf(all)}: ${isBroken ? 'the engine needs mending' : 'the engine works'}`)
  return isBroken ? 1 : 0
}

function providerOf(given: string): LlmProvider {
  const provider = LlmProvider.safeParse(given)
  if (provider.success) return provider.data
  throw new Problem('VALIDATION_FAILED', `<provider> must be one of ${LlmProvider.options.join(', ')}`)
}

type Place = {
  readonly addresses: readonly string[]
  readonly settings: EngineSettings | null
  readonly secrets: readonly string[]
}

function placeOf(provider: LlmProvider, { openai, gemini, cascade }: Config['voice']): Place {
  if (provider === 'voice_provider_a' && openai)
    return { ...wanted[provider], addresses: [openai.url], secrets: [openai.apiKey] }
  if (provider === 'voice_provider_b' && gemini)
    return { ...wanted[provider], addresses: [gemini.url], secrets: [gemini.apiKey] }
  if (provider === 'cascade' && cascade) {
    const { chat, transcription, speech } = cascade
    const origins = new Set([chat, transcription, speech].map(({ url }) => new URL(url).origin))
    return { ...wanted[provider], addresses: [...origins], secrets: chat.apiKey === null ? [] : [chat.apiKey] }
  }
  return { addresses: [], settings: null, secrets: [] }
}

const wanted = {
  voice_provider_a: { settings: { key: 'OPENAI_API_KEY', model: 'OPENAI_REALTIME_MODEL', url: 'OPENAI_REALTIME_URL' } },
  voice_provider_b: { settings: { key: 'GEMINI_API_KEY', model: 'GEMINI_LIVE_MODEL', url: 'GEMINI_LIVE_URL' } },
  cascade: { settings: { key: 'CASCADE_API_KEY', model: 'CASCADE_CHAT_MODEL', url: 'CASCADE_URL' } },
} as const

function missingOf(provider: LlmProvider): string {
  if (provider === 'cascade') return 'set CASCADE_URL and CASCADE_CHAT_MODEL'
  return provider === 'embedded' ? '' : `set ${wanted[provider].settings.key}`
}

/** Hosts without paths: an address may carry a secret. */
function summaryOf(provider: LlmProvider, { openai, gemini, cascade, embedded }: Config['voice']): string {
  const host = (url: string): string => new URL(url).host
  if (provider === 'voice_provider_a' && openai) return `OpenAI Realtime, ${openai.model}, ${host(openai.url)}`
  if (provider === 'voice_provider_b' && gemini) return `Gemini Live, ${gemini.model}, ${host(gemini.url)}`
  if (provider === 'cascade' && cascade) return `${cascade.chat.model}, ${host(cascade.chat.url)}`
  return `on this machine, hearing by ${embedded.hearing}`
}
