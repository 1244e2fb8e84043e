/** Owns the examination of a voice engine by its port alone: is its provider reached, does a session open, and does it say one sentence. */
import { connect } from 'node:net'
import { pause, type Clock } from '../../model/clock.ts'
import { deadline } from '../../model/deadline.ts'
import { frameMs } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { EngineConfig, EngineEvent, EngineSession, VoiceEngine } from '../../model/voice-engine.ts'
import { effectiveConfigOf } from '../../model/worker.ts'
import { withoutBrackets } from '../../net/addresses.ts'
import { silenceOf } from '../../media/codecs/silence.ts'
import type { CheckReport } from '../check-lines.ts'

/** The names of its settings, for advice. */
export type EngineSettings = { readonly key: string; readonly model: string; readonly url: string }

export type EngineExamination = {
  readonly engine: VoiceEngine
  /** Where its provider is; none for an engine on this machine. */
  readonly addresses: readonly string[]
  /** Null: there is nothing to be set. */
  readonly settings: EngineSettings | null
  readonly callId: CallId
  readonly clock: Clock
}

const reachWithin = 5_000
const answerWithin = 20_000
const sentence = 'This is a test call. The voice engine works.'

/** In the order of a call; behind a stage that fails nothing more is asked. */
export async function* examineEngine(examination: EngineExamination): AsyncGenerator<CheckReport> {
  for (const address of examination.addresses) {
    const reached = await reach(address, examination)
    yield reached
    if (reached.verdict === 'failed') return
  }
  yield* tryTalk(examination)
}

async function reach(address: string, { clock, settings }: EngineExamination): Promise<CheckReport> {
  const { hostname, protocol, port } = new URL(address)
  const number = port === '' ? (/^(?:wss|https):$/.test(protocol) ? 443 : 80) : Number(port)
  const check = { name: `${hostname} port ${number} is reached`, expected: 'a TCP connection' }
  const began = clock.now()
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const socket = connect({ host: withoutBrackets(hostname), port: number }, () => resolve(null))
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  const failure = await deadline(clock, reachWithin, promise, () => 'no answer within 5 s')
  socket.destroy()
  if (failure === null) return { ...check, verdict: 'passed', got: after(clock.now() - began), mend: null }
  const mend = `see ${settings?.url ?? 'its address'}, the name server of this machine, and that no firewall stands between`
  return { ...check, verdict: 'failed', got: failure, mend }
}

/** What the session has said so far; times by the clock. */
type Heard = {
  readonly texts: Map<string, string>
  /** The first item with sound. */
  sound: { readonly itemId: string; readonly at: number } | null
  doneAt: number | null
  failure: string | null
}

const maxTexts = 100

async function* tryTalk(examination: EngineExamination): AsyncGenerator<CheckReport> {
  const { clock, settings } = examination
  const heard: Heard = { texts: new Map(), sound: null, doneAt: null, failure: null }
  const began = clock.now()
  const took = (at: number): string => after(at - began)
  const session = await openWithin(examination, (event) => note(heard, event, clock.now()))
  if (typeof session === 'string') return yield failed('a session opens', 'a session', session, settings)
  try {
    yield passed('a session opens', took(clock.now()))
    const isOver = (): boolean => heard.failure !== null || clock.now() - began > answerWithin
    await listen(examination, session, () => heard.sound !== null || isOver())
    if (heard.sound === null) return yield failed('it begins to speak', 'sound', failureOf(heard), settings)
    yield passed('it begins to speak', took(heard.sound.at))
    await listen(examination, session, () => heard.doneAt !== null || isOver())
    if (heard.doneAt === null) return yield failed('its sentence is complete', 'its end', failureOf(heard), settings)
    yield passed('its sentence is complete', took(heard.doneAt))
    const text = heard.texts.get(heard.sound.itemId) ?? ''
    yield text === '' ? failed('it tells what it says', 'a text', 'none', null) : passed('it tells what it says', text)
  } finally {
    session.close()
  }
}

/** The session, or why there is none. One that opens too late is closed. */
async function openWithin(
  { engine, callId, clock }: EngineExamination,
  emit: (event: EngineEvent) => void,
): Promise<EngineSession | string> {
  const opening = Promise.try(() => engine.open(configOf(engine, callId), emit))
  return deadline(clock, answerWithin, opening.catch(messageOf), () => {
    opening.then(
      (opened) => opened.close(),
      () => undefined, // It is told as one that came too late.
    )
    return noAnswer
  })
}

const noAnswer = `no answer within ${answerWithin / 1000} s`
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const failureOf = ({ failure }: Heard): string => failure ?? noAnswer

/** A model reads the instructions; the embedded engine follows the script. */
const configOf = (engine: VoiceEngine, callId: CallId): EngineConfig => ({
  callId,
  direction: 'inbound',
  language: 'en',
  worker: effectiveConfigOf(),
  script: `say ${sentence}`,
  instructions: engine.name === 'embedded' ? null : 'Reply with one short sentence.',
  context: null,
  customer: null,
  tools: [],
  formats: { hears: engine.hears[0]!, speaks: engine.speaks[0]! },
  history: [],
  owesReply: false,
  memory: null,
})

function note(heard: Heard, event: EngineEvent, now: number): void {
  if (event.type === 'audio' && event.payload.length > 0) heard.sound ??= { itemId: event.itemId, at: now }
  if (event.type === 'agent_text' && (heard.texts.has(event.itemId) || heard.texts.size < maxTexts))
    heard.texts.set(event.itemId, event.text)
  if (event.type === 'item_done' && event.itemId === heard.sound?.itemId) heard.doneAt ??= now
  if (event.type === 'failed') heard.failure ??= event.details
}

/** A caller who is there and says nothing. */
async function listen({ engine, clock }: EngineExamination, session: EngineSession, isEnough: () => boolean) {
  const silence = silenceOf(engine.hears[0]!)
  while (!isEnough()) {
    session.hear(silence.slice())
    await pause(clock, frameMs)
  }
}

const after = (ms: number): string => `after ${Math.round(ms)} ms`

const passed = (name: string, got: string): CheckReport => ({ name, verdict: 'passed', expected: got, got, mend: null })

function failed(name: string, expected: string, got: string, settings: EngineSettings | null): CheckReport {
  return { name, verdict: 'failed', expected, got, mend: settings && adviceOn(got, settings) }
}

/** The providers' own words differ; what they are about does not. */
function adviceOn(reason: string, { key, model, url }: EngineSettings): string {
  if (/\b40[13]\b|api.?key|unauthori[sz]ed|permission|authenticat/i.test(reason))
    return `see ${key}: the provider does not take it`
  if (/quota|billing|\b429\b|insufficient|exhausted|rate.?limit/i.test(reason))
    return `the account of ${key} is at its limit: see its plan at the provider`
  if (/\bvoice\b/i.test(reason)) return 'see the name of the voice: the provider does not know it'
  if (/\b404\b|model/i.test(reason)) return `see ${model} and ${url}: the provider does not know the model`
  if (/reached|ECONN|ENOTFOUND|EAI_AGAIN|certificate|closed the connection|no answer/i.test(reason))
    return `see ${url}, and that no firewall or proxy stands between`
  return 'these are the provider’s own words: look them up in its documentation'
}
