/**
 * Owns how a finished call becomes a scenario: what its caller said is said again when the agent says what it had said before, in the caller's own voice where
 * the recording has it apart from the agent's; what the call came to is expected to come about again. Pure.
 */
import { frameMs } from '../../model/frame.ts'
import { wavSoundOf } from '../../media/recording/wav.ts'
import { levelOf } from '../../media/vad/voice-activity.ts'
import { sentencesOf } from '../../voice/english/sentences.ts'
import { frameSamples } from '../callers/line-sound.ts'
import type { FinishedCall, SaidTurn } from './finished-call.ts'
import { speechOf, type Stretch } from './measures.ts'
import { plain } from './pattern.ts'
import { formatVersion } from './scenario.ts'
import { samplesIn } from './sound-file.ts'

export type MadeScenario = {
  readonly scenario: Readonly<Record<string, unknown>>
  /** Of the caller, 16 kHz, by the names that the scenario has for them. */
  readonly sounds: ReadonlyMap<string, Int16Array>
}

type Sound = {
  readonly caller: Int16Array
  readonly callerSpeaks: readonly Stretch[]
  readonly agentSpeaks: readonly Stretch[]
}
type Wish = { readonly name: string; readonly worker: string | null; readonly keepsVoice: boolean }

const recordedHz = 16_000
/** How far a transcript's time may be from its sound, in ticks: over REST it tells whole seconds. */
const clockError = 1_500 / frameMs
/** Kept before and behind what is said. */
const margin = 100 / frameMs
/** One or two words of a sentence that was cut do not tell which one it was. */
const tellingWords = 3

export function scenarioOf(finished: FinishedCall, wish: Wish): MadeScenario {
  const { call, turns } = finished
  const sound = finished.recording && soundIn(finished.recording)
  const sounds = new Map<string, Int16Array>()
  const cut = new Set<SaidTurn>()
  const made: Readonly<Record<string, unknown>>[] = []
  let lastTo = 0
  for (const [place, turn] of turns.entries()) {
    if (turn.role === 'agent') continue
    const before = turns[place - 1] ?? null
    const spoken = sound && spokenIn(sound, turn, lastTo)
    const over = spoken ? sound.agentSpeaks.find(({ from, to }) => from < spoken.from && spoken.from < to) : undefined
    if (over && before) cut.add(before)
    const file = spoken && wish.keepsVoice ? `${call.id}-${made.length + 1}.wav` : null
    if (file && sound && spoken) sounds.set(file, pieceOf(sound.caller, spoken))
    const gap = ((spoken?.from ?? turn.from / frameMs) - lastTo) * frameMs
    // What was not understood cannot be said by another voice.
    if (!file && /^\[.+\]$/.test(turn.text)) continue
    made.push({ ...actionOf(turn, spoken, over), ...whenOf(before, over, gap), ...(file && { sound: file }) })
    lastTo = spoken?.to ?? turn.to / frameMs
  }
  if (call.endedBy === 'caller') made.push({ hangUp: true, ...whenOf(turns.at(-1) ?? null, undefined, 500) })
  return { scenario: { ...headOf(finished, wish), turns: made, expect: expectationOf(finished, cut) }, sounds }
}

function headOf({ call }: FinishedCall, { name, worker }: Wish) {
  const isWeb = call.transport === 'webrtc'
  const isCalled = call.direction === 'outbound'
  const number = isCalled ? call.toNumber : call.fromNumber
  return {
    simulation: formatVersion,
    name,
    line: isWeb ? 'web' : 'sip',
    ...(isCalled && { direction: 'called' }),
    ...(worker !== null && { worker }),
    ...(call.metadata && { metadata: call.metadata }),
    ...(!isWeb && number !== undefined && { caller: { number } }),
  }
}

/** Keys make no sound. */
function actionOf({ text }: SaidTurn, spoken: Stretch | null | undefined, over: Stretch | undefined) {
  const keys = text.replaceAll(' ', '')
  if (!spoken && /^[0-9*#A-D]{1,32}$/.test(keys)) return { keys }
  if (!over || !spoken) return { say: text }
  return { interrupt: text, after: (spoken.from - over.from) * frameMs }
}

/** When it was said: behind the agent's last sentence, over it, or behind nothing. */
function whenOf(before: SaidTurn | null, over: Stretch | undefined, gap: number) {
  if (before?.role !== 'agent') return { unasked: true, after: Math.min(60_000, Math.max(0, Math.round(gap))) }
  const last = sentencesOf(before.text).at(-1) ?? before.text
  if (!over) return { hear: last }
  return plain(last).split(' ').length >= tellingWords ? { again: last } : {}
}

/** What was heard of an agent who was cut depends on the moment: the words before it count, up to the last sentence. */
function expectationOf({ call, turns, tools }: FinishedCall, cut: ReadonlySet<SaidTurn>) {
  const isHungUp = call.endedBy === 'caller'
  const said = turns.flatMap((turn, place) => {
    if (turn.role === 'user') return []
    const isCut = cut.has(turn) || (isHungUp && place === turns.length - 1)
    const sentences = sentencesOf(turn.text)
    return isCut ? sentences.slice(0, -1) : [turn.text]
  })
  const { outcome, endedBy, nextAction, nextActionData, dimensions } = call
  return {
    ...(outcome && { outcome }),
    ...(endedBy && { endedBy }),
    ...(nextAction !== undefined && { nextAction }),
    ...(nextActionData && { nextActionData }),
    ...(dimensions && Object.keys(dimensions).length > 0 && { dimensions }),
    transcript: said.map((agent) => ({ agent })),
    ...(tools && { tools }),
  }
}

/** Null: both sides are one in it, or it is of another form. */
function soundIn(recording: Buffer): Sound | null {
  const shape = wavSoundOf(recording, recording.length)
  if (!shape || shape.channels !== 2 || shape.rateHz !== recordedHz) return null
  const both = samplesIn(recording, shape.dataBytes)
  const channel = (place: 0 | 1) => Int16Array.from({ length: both.length / 2 }, (_, at) => both[2 * at + place] ?? 0)
  const caller = channel(1)
  return { caller, callerSpeaks: speechOf(levelsOf(caller)), agentSpeaks: speechOf(levelsOf(channel(0))) }
}

function levelsOf(samples: Int16Array): number[] {
  const count = Math.floor(samples.length / frameSamples)
  return Array.from({ length: count }, (_, at) => levelOf(samples.subarray(at * frameSamples, (at + 1) * frameSamples)))
}

/** Where the caller is heard saying this, behind the turn before; null: nowhere. */
function spokenIn({ callerSpeaks }: Sound, { from, to }: SaidTurn, lastTo: number): Stretch | null {
  const near = callerSpeaks.filter(
    (stretch) =>
      stretch.from >= lastTo && stretch.to > from / frameMs - clockError && stretch.from < to / frameMs + clockError,
  )
  const [first] = near
  if (!first) return null
  // A pause within a turn parts it; what begins behind the turn is the next one.
  const last = near.findLast((stretch) => stretch.from < to / frameMs) ?? first
  return { from: first.from, to: Math.max(first.to, last.to) }
}

const pieceOf = (samples: Int16Array, { from, to }: Stretch): Int16Array =>
  samples.slice(Math.max(0, from - margin) * frameSamples, (to + margin) * frameSamples)
