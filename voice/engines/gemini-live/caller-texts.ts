/**
 * Owns what the caller of a Gemini Live session said: texts come piece by piece, at no certain time, and name no utterance; they belong to the oldest
 * that has not got its own. Each end of speech has one final text, in order. Counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'
import type { WireEvent } from '../hosted/wire.ts'

export type CallerTexts = {
  /** Speech has ended. */
  await(from: number, to: number): void
  /** A piece of what was said; `finished`: it was the last one. */
  add(piece: string, finished: boolean): void
  /** What may still be changed by the provider. */
  guess(text: string): void
  /** What has come of the text is all of it. Where none has come, it is awaited on: it may be later than the answer. */
  settle(): void
  /** 20 ms have passed. */
  frame(): void
  isAwaiting(): boolean
}

type Line = {
  /** Ms on the caller's line. */
  at(): number
  /** When the caller who speaks now has begun; null for silence. */
  begun(): number | null
  emit(event: WireEvent): void
}

/** Text that comes in pieces is complete when none has come for so long. */
const pieceFrames = 1_000 / frameMs
/** Text that has not come by then does not come. */
const textFrames = 3_000 / frameMs
const maxText = 10_000
const maxAwaiting = 16

export function createCallerTexts({ at, begun, emit }: Line): CallerTexts {
  const awaiting: { readonly from: number; readonly to: number }[] = []
  let said = ''
  let isWhole = false
  /** Frames since the text grew or speech ended, and since the oldest text is awaited. */
  let quiet = 0
  let awaited = 0

  const settleOne = (): void => {
    const { from, to } = awaiting.shift()!
    emit({ type: 'user_text', text: said.trim(), isFinal: true, confidence: null, from, to })
    said = ''
    isWhole = false
    awaited = 0
  }
  /** Words of speech that nobody noticed. They come late, so that nobody is broken off by them. */
  const settleUnnoticed = (): void => {
    if (said.trim() === '' || begun() !== null) return
    emit({ type: 'user_speech_stopped', at: at() })
    awaiting.push({ from: Math.max(0, at() - quiet * frameMs), to: at() })
    settleOne()
  }
  const settleNext = (): void => (awaiting.length > 0 ? settleOne() : settleUnnoticed())
  const guess = (text: string): void => {
    const from = awaiting[0]?.from ?? begun()
    const partial = (said + text).slice(0, maxText).trim()
    if (from === null || partial === '') return
    emit({ type: 'user_text', text: partial, isFinal: false, confidence: null, from, to: awaiting[0]?.to ?? at() })
  }
  return {
    await(from, to) {
      awaiting.push({ from, to })
      quiet = 0
      if (awaiting.length === 1) awaited = 0
      if (awaiting.length > maxAwaiting || isWhole) settleOne()
    },
    add(piece, finished) {
      if (piece !== '') quiet = 0
      said = (said + piece).slice(0, maxText)
      guess('')
      isWhole = finished && said.trim() !== ''
      if (isWhole) settleNext()
    },
    guess,
    settle() {
      while (awaiting.length > 0 && said.trim() !== '') settleOne()
      settleUnnoticed()
    },
    frame() {
      quiet++
      awaited++
      const isOver = said !== '' && quiet >= pieceFrames
      if (isOver || (awaiting.length > 0 && awaited >= textFrames)) settleNext()
    },
    isAwaiting: () => awaiting.length > 0,
  }
}
