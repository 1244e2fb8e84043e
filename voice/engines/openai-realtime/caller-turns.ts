/**
 * Owns what the caller says: when they speak, and their words in the order they were said in, which the provider's transcripts need not come in.
 * The wait for words is bounded and counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import { unclear } from '../../../model/transcript-marks.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { listOf, msOf, objectOf, textOf, type Message } from './fields.ts'
import type { LineClock } from './line-clock.ts'

export type CallerTurns = {
  started(message: Message): void
  stopped(message: Message): void
  /** Nothing more is said. False: nobody was speaking. */
  end(): boolean
  /** The provider has named what it takes for said. */
  committed(message: Message): void
  partText(message: Message): void
  finalText(message: Message): void
  noText(message: Message): void
  /** 20 ms have passed. */
  frame(): void
}

type Turn = {
  readonly itemId: string
  readonly from: number
  to: number | null
  waited: number
  partial: string
  final: { readonly text: string; readonly confidence: number | null } | null
}

const notUnderstood = { text: unclear, confidence: null } as const
const maxWait = 5_000 / frameMs
const maxTurns = 32
const maxText = 20_000

type Deps = {
  readonly line: LineClock
  /** By so many ms the times that the provider tells lie before the speech and behind it. */
  readonly padding: { readonly before: number; readonly behind: number }
  emit(event: WireEvent): void
}

export function createCallerTurns({ line, padding, emit }: Deps): CallerTurns {
  const turns: Turn[] = []
  /** The turn that we have ended ourselves: what is committed then may have another name. */
  let ended: { readonly turn: Turn; itemId: string } | null = null
  const turnOf = ({ item_id }: Message): Turn | undefined => {
    const named = turns.find(({ itemId }) => itemId === textOf(item_id))
    return named ?? (ended?.itemId === textOf(item_id) ? ended.turn : undefined)
  }

  const flush = (): void => {
    for (let turn = turns[0]; turn?.final && turn.to !== null; turn = turns[0]) {
      turns.shift()
      emit({ type: 'user_text', ...turn.final, isFinal: true, from: turn.from, to: turn.to })
    }
  }
  const stop = (turn: Turn, at: number): void => {
    turn.to = Math.max(at, turn.from)
    emit({ type: 'user_speech_stopped', at: turn.to })
    flush()
  }
  const settle = (turn: Turn | undefined, final: Turn['final']): void => {
    if (turn === undefined) return
    turn.final ??= final
    flush()
  }
  /** A turn whose end nobody told ends when the next one begins. */
  const endLast = (): void => {
    const last = turns.at(-1)
    if (last?.to === null) stop(last, line.now())
    if (turns.length >= maxTurns) settle(turns[0], notUnderstood)
  }
  return {
    started(message) {
      endLast()
      const start = msOf(message.audio_start_ms)
      // The time told is that of the sound that is kept from before the speech. Providers that are only alike tell none.
      const from = start === null ? line.now() : line.lineMs(start + padding.before)
      turns.push({ itemId: textOf(message.item_id), from, to: null, waited: 0, partial: '', final: null })
      emit({ type: 'user_speech_started', at: from })
    },
    stopped(message) {
      const turn = turnOf(message)
      if (turn?.to !== null) return
      const end = msOf(message.audio_end_ms)
      const known = end === null ? line.now() : line.lineMs(end)
      // It includes the silence by which the end was known.
      stop(turn, known - padding.behind)
    },
    end() {
      const last = turns.at(-1)
      if (last?.to !== null) return false
      ended = { turn: last, itemId: last.itemId }
      stop(last, line.now())
      return true
    },
    committed(message) {
      if (ended && turnOf(message) === undefined) ended.itemId = textOf(message.item_id)
    },
    partText(message) {
      const turn = turnOf(message)
      if (turn === undefined || turn.final !== null) return
      turn.partial = (turn.partial + textOf(message.delta)).slice(0, maxText)
      if (turn !== turns[0] || turn.partial === '') return
      const { partial: text, from, to } = turn
      emit({ type: 'user_text', text, isFinal: false, confidence: null, from, to: to ?? line.now() })
    },
    finalText: (message) => settle(turnOf(message), finalOf(message)),
    noText: (message) => settle(turnOf(message), notUnderstood),
    frame() {
      for (const turn of turns) if (turn.to !== null) turn.waited++
      if (turns[0] && turns[0].waited >= maxWait) settle(turns[0], notUnderstood)
    },
  }
}

const finalOf = (message: Message): Turn['final'] => ({
  text: textOf(message.transcript).trim().slice(0, maxText),
  confidence: confidenceOf(message),
})

/** The geometric mean of what the recogniser gave its tokens. */
function confidenceOf(message: Message): number | null {
  const given = listOf(message.logprobs).map((token) => objectOf(token).logprob)
  const logprobs = given.filter((value): value is number => typeof value === 'number' && Number.isFinite(value))
  if (logprobs.length === 0) return null
  return Math.min(1, Math.exp(logprobs.reduce((sum, value) => sum + value, 0) / logprobs.length))
}
