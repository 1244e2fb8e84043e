/** Owns calls to a service whose providers fail: one service, one provider of each kind behind a line that can be cut, and a telephone that calls. */
import type { Test } from 'tap'
import type { WorkerConfig } from '../../model/worker.ts'
import { cascadeKey, cascadeModels, openCascadeServer, type CascadeServer } from '../fake/cascade-server.ts'
import { openEngineStage, type EngineLine, type EngineLineOptions, type EngineStage } from './engine-stage.ts'
import { openGeminiServer } from '../fake/gemini-live-server.ts'
import { inTime } from './in-time.ts'
import type { Asked, Said } from '../fake/openai-realtime-options.ts'
import { openRealtimeServer, type RealtimeServer } from '../fake/openai-realtime-server.ts'
import { openProviderLine, type ProviderLine } from '../fake/provider-line.ts'
import { heard } from './ten-turns/caller.ts'
import { openTestPhone, type PhoneCaller, type TestPhone } from './ten-turns/phone.ts'

type Json = Record<string, unknown>

export const greeting = 'Hello, what can I do?'
export const callerSays = 'What is the time?'
export const answer = 'It is nine.'
export const sorry = 'I am sorry.'
export const goodbye = 'Goodbye.'

export type FailingCalls = {
  readonly stage: EngineStage
  readonly phone: TestPhone
  /** `callerSays`, spoken. */
  readonly speech: Int16Array
  readonly realtime: { readonly server: RealtimeServer; readonly line: ProviderLine }
  readonly cascade: { readonly server: CascadeServer; readonly line: ProviderLine }
  readonly gemini: { readonly line: ProviderLine }
  /** What the model of OpenAI Realtime says from now on to the caller; first to the first words of a call. */
  realtimeSays(...replies: (readonly Said[])[]): void
  /** What it was told of its tools. */
  readonly toolOutputs: readonly Json[]
  lineFor(what: string, config: WorkerConfig, more?: Partial<EngineLineOptions>): Promise<EngineLine>
  /** The caller speaks, and hears this. */
  speaks(caller: PhoneCaller, hears: string): Promise<void>
  /** A call that has greeted. */
  greeted(line: EngineLine): Promise<PhoneCaller>
  ended(line: EngineLine): Promise<Json>
}

export const goodbyes: readonly Said[] = [{ text: goodbye }, { call: 'end_call', arguments: '{}' }]

export async function openFailingCalls(t: Pick<Test, 'teardown'>): Promise<FailingCalls> {
  let replies: (readonly Said[])[] = []
  const toolOutputs: Json[] = []
  const model = ({ last, instructions }: Asked): readonly Said[] => {
    if (instructions !== null) return [{ text: 'Are you still there?' }]
    if (last?.type === 'function_call_output') {
      toolOutputs.push(JSON.parse(last.output) as Json)
      return [{ text: sorry }]
    }
    if (last?.type !== 'message' || last.role !== 'user') return [{ text: greeting }]
    return replies.shift() ?? goodbyes
  }
  const server = await openRealtimeServer({ model, transcript: () => ({ text: callerSays }), pace: 10 })
  t.teardown(() => server.close())
  const line = await openProviderLine(t, server.url)
  const silent = await openGeminiServer({ model: () => [], refusal: 'silence' })
  t.teardown(() => silent.close())
  const geminiLine = await openProviderLine(t, silent.url)
  const cascade = await openCascadeServer({ transcript: callerSays })
  cascade.thinks((messages) => (messages.at(-1)?.content?.endsWith(callerSays) ? answer : greeting))
  t.teardown(() => cascade.close())
  const cascadeLine = await openProviderLine(t, cascade.url)
  const stage = await openEngineStage(t, {
    OPENAI_API_KEY: server.key,
    OPENAI_REALTIME_URL: line.through(server.url),
    GEMINI_API_KEY: silent.key,
    GEMINI_LIVE_URL: geminiLine.through(silent.url),
    CASCADE_URL: cascadeLine.through(cascade.url),
    CASCADE_API_KEY: cascadeKey,
    CASCADE_TRANSCRIPTION_MODEL: cascadeModels.transcription,
    CASCADE_CHAT_MODEL: cascadeModels.chat,
    CASCADE_SPEECH_MODEL: cascadeModels.speech,
  })
  const phone = await openTestPhone(t, stage)
  const speech = await stage.embedded.speak(callerSays, 'slt')
  return {
    stage,
    phone,
    speech,
    realtime: { server, line },
    cascade: { server: cascade, line: cascadeLine },
    gemini: { line: geminiLine },
    toolOutputs,
    realtimeSays(...given) {
      replies = given
    },
    lineFor: (name, config, more = {}) => stage.addLine({ name, script: 'Greet.', config, ...more }),
    async speaks(caller, hears) {
      await inTime('silence', caller.silence(300))
      await caller.say(speech)
      await heard(caller, hears)
    },
    async greeted(given) {
      const caller = await phone.call(given)
      await heard(caller, greeting)
      return caller
    },
    ended: (given) => inTime('call.ended', given.next('call.ended'), () => given.events('call.status_update')),
  }
}
