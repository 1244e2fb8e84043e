/** Owns one call of a scenario with one seed: from the line to what is known of the call when it has been processed. */
import path from 'node:path'
import { systemClock as clock } from '../../app/clock.ts'
import type { OpusLibrary } from '../../media/codecs/opus.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { pause } from '../../model/clock.ts'
import type { PhoneCall, TranscriptSegment } from '../../model/phone-call.ts'
import { createRandom, type Random } from '../chaos/random.ts'
import { actTurns, textOf, type ActDeps, type Stuck } from './act-turns.ts'
import { actByChat, type ChatEndpoint } from './chat-caller.ts'
import { createCallerLeg, type CallerLeg, type Track } from './caller-leg.ts'
import type { Deployment } from './deployment.ts'
import { disturbed } from './disturbed-line.ts'
import type { Events, HeardEvent, ToolUse } from './events.ts'
import { joinWebCall, type AnsweredLine, type Telephone } from './lines.ts'
import type { ReadScenario } from './read-scenario.ts'
import type { Turn } from './scenario.ts'
import { readSound } from './sound-file.ts'
import { createSurroundings } from './surroundings.ts'
import { voiceOf, type Voice, type Voices } from './voices.ts'

export type Stage = {
  readonly deployment: Deployment
  readonly telephone: Telephone
  /** `host:port` that telephones dial; null: none is known. */
  readonly sip: string | null
  /** Local address of browsers' sound; null: loopback. */
  readonly webAddress: string | null
  /** Null: a deployment that cannot reach us. */
  readonly events: Events | null
  readonly voices: Voices
  /** Who plays callers with a role; null: nobody. */
  readonly chat: ChatEndpoint | null
  readonly opus: OpusLibrary
  readonly ticker: Ticker
  /** Numbers of callers whose calls are not over: a call is found by its number. */
  readonly shown: Set<string>
  /** Aborted: calls are hung up. */
  readonly signal: AbortSignal
}

/** What is known of a call when it is over. */
export type CallFacts = {
  readonly callId: string
  readonly call: PhoneCall
  readonly transcript: readonly TranscriptSegment[]
  /** Null: nobody told. */
  readonly events: readonly HeardEvent[] | null
  readonly tools: readonly ToolUse[] | null
  readonly track: Track
  /** Ticks of the leg from its begin to now, at 0 of performance.now: puts events on the leg's clock. */
  readonly began: number
  readonly answeredIn: number
  readonly stuck: Stuck | null
}

/** A call that talks for longer is hung up. */
const longestCall = 10 * 60_000
const settledWithin = 30_000
const lookEvery = 300
/** From +12025550100 on; behind them are numbers of the demo. */
const exampleNumbers = 76

/** Rejects when there was no call at all. */
export async function runCall(stage: Stage, read: ReadScenario, seed: number): Promise<CallFacts> {
  const { scenario } = read
  const random = createRandom(seed)
  await using closing = new AsyncDisposableStack()
  const number = scenario.line === 'web' ? null : (scenario.caller.number ?? takeNumber(stage.shown, random))
  if (number !== null) closing.defer(() => void stage.shown.delete(number))
  const line = await getLine(stage, read, number)
  closing.defer(() => line.hangUp())
  const { babble } = scenario.surroundings
  const people = babble === undefined ? new Int16Array(0) : await stage.voices.people()
  const surroundings = createSurroundings(scenario.surroundings, { random: createRandom(seed + 1), people })
  const disturbance = { ...scenario.surroundings, seed }
  const leg = createCallerLeg({
    line: disturbed(line.line, disturbance, clock),
    audio: line.audio,
    opus: stage.opus,
    ticker: stage.ticker,
    surroundings,
  })
  closing.defer(() => leg.close())
  const began = performance.now()
  const stuck = await talk(stage, read, { leg, line, random })
  const settled = await settle(stage, line.callId)
  const events = stage.events?.of(line.callId) ?? null
  const tools = stage.events?.toolsOf(line.callId) ?? null
  const { callId, answeredIn } = line
  return { callId, ...settled, events, tools, track: leg.track, began, answeredIn, stuck }
}

/** Of a range that is reserved for examples (NANP 555-01XX): the one that the seed says, or the next that nobody shows. */
export function takeNumber(shown: Set<string>, random: Random): string {
  const first = random.below(exampleNumbers)
  const numbers = Array.from(
    { length: exampleNumbers },
    (_, index) => `+120255501${String((first + index) % exampleNumbers).padStart(2, '0')}`,
  )
  const number = numbers.find((one) => !shown.has(one)) ?? numbers[0]!
  shown.add(number)
  return number
}

/** `number`: of a telephone. */
async function getLine(stage: Stage, { scenario }: ReadScenario, number: string | null): Promise<AnsweredLine> {
  const { deployment, telephone, sip } = stage
  const worker = await deployment.worker(scenario.worker)
  const wish = { deployment, worker, scenario }
  if (number === null) {
    const offered = scenario.tools && stage.events ? stage.events.offer(scenario.tools) : []
    return joinWebCall(wish, offered, stage.webAddress)
  }
  if (scenario.direction === 'called') return telephone.beCalled({ ...wish, number })
  if (sip === null) throw new Error('where telephones call this deployment must be named: --sip <host:port>')
  return telephone.dial({ ...wish, sip, number })
}

type Talk = { readonly leg: CallerLeg; readonly line: AnsweredLine; readonly random: Random }

/** Until the call is over, whoever ends it. */
async function talk(stage: Stage, read: ReadScenario, { leg, line, random }: Talk): Promise<Stuck | null> {
  const { scenario } = read
  const voice = voiceOf(scenario.caller, random)
  const agentSaid = line.agentSaid ? { said: line.agentSaid, stop: () => undefined } : askedFor(stage, line.callId)
  let isOver = false
  const over = line.ended.then(() => {
    isOver = true
    leg.close()
  })
  const hangUp = (): void => void line.hangUp()
  stage.signal.addEventListener('abort', hangUp, { once: true })
  const cancel = clock.after(longestCall, hangUp)
  try {
    const deps = { leg, scenario, random, agentSaid: agentSaid.said, isOver: () => isOver }
    const stuck = await act({ stage, read, random, voice }, deps)
    if (!isOver) await line.hangUp()
    await over
    return stuck
  } finally {
    cancel()
    stage.signal.removeEventListener('abort', hangUp)
    agentSaid.stop()
  }
}

function act(speaker: Speaker, deps: Omit<ActDeps, 'soundOf'>): Promise<Stuck | null> {
  const { stage, voice } = speaker
  const { role } = deps.scenario.caller
  if (role === undefined) return actTurns({ ...deps, soundOf: (turn) => soundOf(speaker, turn) })
  const { chat } = stage
  if (!chat) throw new Error('a caller with a role is played by a chat model: --chat-url and --chat-model')
  return actByChat({ ...deps, chat, role, soundOf: (text) => stage.voices.speak(text, voice) })
}

/** A telephone is not told what was said: the account is. */
function askedFor({ deployment }: Stage, callId: string) {
  const stopped = new AbortController()
  let said: readonly string[] = []
  void (async () => {
    while (await pause(clock, lookEvery, stopped.signal)) {
      // A look that fails is followed by another one.
      const transcript = await deployment.transcript(callId).catch(() => null)
      if (transcript) said = transcript.filter(({ speaker }) => speaker === 'agent').map(({ text }) => text)
    }
  })()
  return { said: () => said, stop: () => stopped.abort() }
}

const asideLevel = 0.5

async function soundOf({ stage, read, random, voice }: Speaker, turn: Turn): Promise<Int16Array> {
  if ('sound' in turn && turn.sound !== undefined) return readSound(path.resolve(read.folder, turn.sound))
  if ('cough' in turn) return stage.voices.cough(random)
  if ('silence' in turn || 'keys' in turn || 'hangUp' in turn) return new Int16Array(0)
  const own = turn.voice === undefined ? voice : voiceOf({ ...voice, voice: turn.voice }, random)
  const sound = await stage.voices.speak(textOf(turn), {
    ...own,
    pitch: turn.pitch ?? own.pitch,
    speed: turn.speed ?? own.speed,
  })
  return 'aside' in turn ? sound.map((sample) => sample * asideLevel) : sound
}

type Speaker = { readonly stage: Stage; readonly read: ReadScenario; readonly random: Random; readonly voice: Voice }

/** What the account is told when the call has been processed. */
async function settle({ deployment, events }: Stage, callId: string) {
  const isTold = (): boolean => !events || events.of(callId).some(({ type }) => type === 'call.ended')
  for (const until = performance.now() + settledWithin; ; await pause(clock, lookEvery)) {
    const call = await deployment.call(callId)
    const isDone = call.status === 'completed' && call.postProcessingStatus !== 'in_progress'
    if ((isDone && isTold()) || performance.now() > until)
      return { call, transcript: await deployment.transcript(callId) }
  }
}
