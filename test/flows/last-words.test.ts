/**
 * A caller answers and hangs up at once: what they said is in the transcript and in the dimensions, with every engine, by BYE and by the page's bye.
 * The whole service, real SIP and WebRTC, and providers that speak their protocols.
 */
import { test, type Test } from 'tap'
import { systemClock as clock } from '../../app/clock.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { WebCallSession } from '../../model/web-call.ts'
import type { Dimension, LlmProvider } from '../../model/worker.ts'
import { createSyntheticCaller } from '../../tools/callers/synthetic-caller.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { cascadeKey, cascadeModels, openCascadeServer } from '../fake/cascade-server.ts'
import { openGeminiServer } from '../fake/gemini-live-server.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'
import { openEngineStage, type EngineLine, type EngineStage } from '../scenes/engine-stage.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { openTestPhone } from '../scenes/ten-turns/phone.ts'

const question = 'Shall I book it?'
const said = 'Yes, please.'
const dimensions: Dimension[] = [{ key: 'book', name: 'Book it', type: 'boolean' }]
const noted = { key: 'book', value: true }
const engines: readonly LlmProvider[] = ['embedded', 'voice_provider_a', 'voice_provider_b', 'cascade']
const now = (): number => performance.now()

test(
  'what a caller said right before they hung up is in the transcript and in the dimensions',
  { timeout: 120_000 },
  async (t) => {
    const stage = await openEngineStage(t, await openProviders(t))
    const speech = trimmed(await stage.embedded.speak(said, 'rms'))
    const lines = new Map<LlmProvider, EngineLine>()
    for (const engine of engines) lines.set(engine, await addLine(stage, engine, engine))
    const web = await addLine(stage, 'embedded', 'web')
    const phone = await openTestPhone(t, stage)
    t.jobs = 2
    await Promise.all([
      ...engines.map((engine) =>
        t.test(`${engine}, by telephone`, { buffered: true }, async (t) => {
          const line = lines.get(engine)!
          const caller = await phone.call(line)
          await inTime(question, agentAsked(line), caller.seen)
          await inTime('silence', caller.silence(300))
          await saidAll(caller, speech)
          const hungUpAt = Date.now()
          await caller.hangUp()
          await proveHeard(t, stage, line, hungUpAt)
        }),
      ),
      t.test('embedded, from a browser', { buffered: true }, async (t) => {
        const { call, voice, told } = await callFromBrowser(t, stage, web)
        await inTime(question, agentAsked(web), () => told)
        await inTime('silence', voice.silence(300))
        await saidAll(voice, speech)
        const hungUpAt = Date.now()
        await call.hangUp()
        await proveHeard(t, stage, web, hungUpAt)
      }),
    ])
  },
)

test(
  "the agent's next turn is told after the caller's final text, however late that is",
  { timeout: 120_000 },
  async (t) => {
    const stage = await openEngineStage(t, await openProviders(t, 2_000))
    const speech = await stage.embedded.speak(said, 'rms')
    const lines = new Map<LlmProvider, EngineLine>()
    for (const engine of engines) lines.set(engine, await addLine(stage, engine, engine))
    t.jobs = 2
    await Promise.all(
      engines.map((engine) =>
        t.test(engine, { buffered: true }, async (t) => {
          const line = lines.get(engine)!
          const { voice, told } = await callFromBrowser(t, stage, line)
          await inTime(question, agentAsked(line), () => told)
          await inTime('silence', voice.silence(300))
          await voice.say(speech)
          const shown = () => told.filter((message) => message.type === 'transcript')
          const isNext = ({ role, turnIndex }: Transcript): boolean => role === 'agent' && turnIndex > 0
          await until(() => shown().some((message) => isNext(message) && message.isFinal), shown)
          const answered = shown().findIndex(isNext)
          const heard = shown().findIndex(({ role, isFinal }) => role === 'user' && isFinal)
          t.ok(heard !== -1 && heard < answered, JSON.stringify(shown()))
        }),
      ),
    )
  },
)

type Transcript = Extract<ServerMessage, { type: 'transcript' }>

function addLine(stage: EngineStage, llmProvider: LlmProvider, name: string): Promise<EngineLine> {
  const script = `ask book (yes/no): ${question}\nend It is booked.`
  return stage.addLine({ name, script, config: { llmProvider, dimensions } })
}

async function callFromBrowser(t: Test, stage: EngineStage, line: EngineLine) {
  const session = WebCallSession.parse(await stage.rest('POST', '/web-calls', { workerId: line.workerId }))
  const told: ServerMessage[] = []
  const onMessage = (message: ServerMessage): void => void told.push(message)
  const call = await placeWebCall({ ...session, createCaller: () => createWeriftCaller(), onMessage })
  t.teardown(() => call.hangUp())
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  t.teardown(() => ticker.close())
  const audio = await call.caller.connected
  const voice = createSyntheticCaller({ caller: call.caller, audio, opus: createOpusLibrary(), ticker, now })
  t.teardown(() => voice.close())
  return { call, voice, told }
}

/** Resolves with the frame behind the last one of the speech. */
async function saidAll({ say }: { say(speech: Int16Array): Promise<unknown> }, speech: Int16Array): Promise<void> {
  await Promise.all([say(speech), say(new Int16Array(320))])
}

async function agentAsked(line: EngineLine): Promise<void> {
  await until(() => line.events('call.transcript').some(({ role, text }) => role === 'agent' && text === question))
}

type Ended = { readonly endedAt: string; readonly transcript: { readonly speaker: string; readonly text: string }[] }
type Call = { readonly id: string; readonly dimensions?: object; readonly endedAt: string; readonly status: string }

async function proveHeard(t: Test, stage: EngineStage, line: EngineLine, hungUpAt: number): Promise<void> {
  const ended = (await inTime('call.ended', line.next('call.ended'), () =>
    line.events('call.transcript'),
  )) as unknown as Ended & { callId: string }
  const segments = ended.transcript.map(({ speaker, text }) => `${speaker}: ${text}`)
  t.equal(segments.length, 2, JSON.stringify(segments))
  t.match(segments.at(-1), /^user: (yes|yep),? please\.?$/i)
  const [call, transcript] = await Promise.all([
    stage.rest('GET', `/phone-calls/${ended.callId}`) as Promise<Call>,
    stage.rest('GET', `/phone-calls/${ended.callId}/transcript`) as Promise<unknown> as Promise<Ended['transcript']>,
  ])
  t.match(transcript.at(-1), { speaker: 'user', text: /please/i })
  t.same(call.dimensions, { book: true })
  t.ok(Date.parse(call.endedAt) - hungUpAt < 500, `${Date.parse(call.endedAt) - hungUpAt} ms after the caller hung up`)
}

/** Nothing but the words. */
function trimmed(speech: Int16Array): Int16Array {
  const end = speech.findLastIndex((sample) => Math.abs(sample) > 300)
  return speech.slice(0, end + 1)
}

/** `after`: ms from the end of what the caller said to its text. */
async function openProviders(t: Test, after = 500): Promise<Record<string, string>> {
  const answer = [{ text: 'It is booked.' }]
  const realtime = await openRealtimeServer({
    model: ({ last }) =>
      last?.type === 'message' && last.role === 'user'
        ? [{ call: 'note_value', arguments: JSON.stringify(noted) }]
        : last?.type === 'function_call_output'
          ? answer
          : [{ text: question }],
    transcript: () => ({ text: said, after }),
    pace: 20,
  })
  t.teardown(() => realtime.close())
  const gemini = await openGeminiServer({
    model({ kind }) {
      if (kind === 'voice') return [{ call: 'note_value', args: noted }]
      return kind === 'tool' ? answer : [{ text: question }]
    },
    transcript: () => said,
    transcriptAfter: after,
    pace: 20,
  })
  t.teardown(() => gemini.close())
  const cascade = await openCascadeServer()
  t.teardown(() => cascade.close())
  cascade.hears(said, said, said)
  cascade.thinks((messages) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return { text: 'It is booked.' }
    return last?.role === 'user' && last.content.includes('please')
      ? { calls: [{ name: 'note_value', arguments: JSON.stringify(noted) }] }
      : { text: question }
  })
  return {
    OPENAI_API_KEY: realtime.key,
    OPENAI_REALTIME_URL: realtime.url,
    GEMINI_API_KEY: gemini.key,
    GEMINI_LIVE_URL: gemini.url,
    CASCADE_URL: cascade.url,
    CASCADE_API_KEY: cascadeKey,
    CASCADE_TRANSCRIPTION_MODEL: cascadeModels.transcription,
    CASCADE_CHAT_MODEL: cascadeModels.chat,
    CASCADE_SPEECH_MODEL: cascadeModels.speech,
  }
}
