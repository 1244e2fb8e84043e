/**
 * Owns what becomes of words that a former actor was saying when it was lost, as the leg knows them: those that the caller hears to their end are the
 * agent's, and a sentence of which not all sound was there is gone on with from its last pause that was. Pure.
 */
import { frameMs } from '../../model/frame.ts'
import type { Json } from '../../model/json.ts'
import type { LegReply, LeftWords } from '../../model/leg.ts'
import type { EngineConfig } from '../../model/voice-engine.ts'
import { heardText, type Adopted } from './utterances.ts'

export type Left = NonNullable<Extract<LegReply, { readonly type: 'started' }>['left']>

export type GoingOn = {
  readonly adopted: readonly Adopted[]
  readonly config: Pick<EngineConfig, 'history' | 'owesReply' | 'brokenOff' | 'unheardMs'> & { readonly memory: Json }
  readonly ends: LeftWords['ends'] | null
}

type Known = {
  readonly config: Pick<EngineConfig, 'history' | 'owesReply' | 'memory'>
  /** When the last turn of the agent that is written down began, ms since the answer; absent: there is none. */
  readonly agentUntil?: number
  readonly answeredAt: number
}

/** Ms of a letter, where nothing tells how long a text will take. */
const letterMs = 65
/** So much further than a pause is looked for: voices differ. */
const atMost = 1.1

/** Null: nothing is left that nobody has written down. */
export function goOnFrom(
  { words, lastPlayedSeq }: Left,
  { config, agentUntil = -1, answeredAt }: Known,
): GoingOn | null {
  const unwritten = words.filter(({ from }) => from > agentUntil)
  const last = unwritten.at(-1)
  if (!last) return null
  const adopted = unwritten.map((spoken) => ({
    text: textOf(spoken),
    firstSeq: spoken.firstSeq,
    frames: spoken.sent,
    startsAt: answeredAt + spoken.from,
  }))
  const heard = adopted.flatMap(({ text }) => (text === '' ? [] : [{ role: 'agent', text } as const]))
  const isBrokenOff = last.sent !== last.frames && !last.isCut
  const unheard = Math.max(0, last.firstSeq + last.sent - 1 - lastPlayedSeq) * frameMs
  return {
    adopted,
    config: {
      history: [...config.history, ...heard],
      memory: last.memory ?? config.memory,
      owesReply: isBrokenOff,
      unheardMs: unheard,
      ...(isBrokenOff && { brokenOff: { rest: last.text.slice(textOf(last).length).trim() } }),
    },
    ends: isBrokenOff ? null : (last.ends ?? null),
  }
}

/** What the sound says that is played of it. */
function textOf({ text, sent, frames, isCut }: LeftWords): string {
  if (frames !== null) return heardText(text, sent, frames)
  const letters = (sent * frameMs) / letterMs
  if (isCut) return heardText(text, letters, text.length)
  return upToPause(text, letters * atMost)
}

/** Up to the last end of a sentence or clause within so many letters; the sound of an engine comes in such pieces. */
function upToPause(text: string, letters: number): string {
  const pauses = [...text.matchAll(/[.!?;:,…—](?=\s|$)/g)].map(({ index }) => index + 1)
  return text.slice(0, pauses.findLast((end) => end <= letters) ?? 0)
}
