/**
 * Owns the agent's utterances that the caller has not heard out: cuts what the engine says into frames, and knows which utterance each frame
 * belongs to, so that what was really heard can be told from what was said. Pure: time is an argument.
 */
import { frameMs, type AudioFormat } from '../../model/frame.ts'
import { frameBytesOf } from '../../media/codecs/frame-bytes.ts'
import { silenceOf } from '../../media/codecs/silence.ts'
import type { Spoken } from './told-words.ts'

/** One utterance as the caller heard it. Times are ms since the epoch. */
export type Heard = {
  readonly itemId: string
  readonly text: string
  readonly from: number
  readonly playedMs: number
  readonly complete: boolean
}

type Item = {
  readonly itemId: string
  readonly firstSeq: number
  readonly startsAt: number
  text: string
  frames: number
  done: boolean
}

/** Words that are being played, as this actor's own from here on. `startsAt`: ms since the epoch. */
export type Adopted = {
  readonly text: string
  readonly firstSeq: number
  readonly frames: number
  readonly startsAt: number
}

export type Utterances = {
  /** Whole frames that are ready to be sent; a rest waits for more sound or for `finish`. */
  audio(itemId: string, payload: Uint8Array, now: number): { readonly seq: number; readonly payload: Uint8Array }[]
  text(itemId: string, text: string): void
  /** The utterance has all its sound: the rest is filled up with silence. Null: it had none, and is forgotten. */
  finish(itemId: string, now: number): { readonly seq: number; readonly payload: Uint8Array }[] | null
  /** Utterances that have been heard completely by now; they are forgotten. */
  playedUpTo(lastPlayedSeq: number): Heard[]
  /** The same for all that there are, complete or not; none is left afterwards. Of `unheard` utterances nothing was played. */
  cut(lastPlayedSeq: number): { readonly heard: Heard[]; readonly unheard: string[] }
  busy(): boolean
  /** Words that are being played already; they have all the sound that they will have. `next`: of the next frame. Answers with their item. */
  adopt(words: Adopted, next: number, now: number): string
  /** That which was begun last; null: nothing is said. */
  newest(): Spoken | null
  /** Of the next frame. */
  nextSeq(): number
  /** Of all that there are. */
  texts(): string[]
}

/** Texts that wait for their sound; more than this many are an engine gone wrong. */
const maxEarlyTexts = 64

/** `firstSeq`: frames before it were another's. */
export function createUtterances(format: AudioFormat, firstSeq = 0): Utterances {
  const chopper = createChopper(format)
  const items: Item[] = []
  const earlyTexts = new Map<string, string>()
  let nextSeq = firstSeq
  let freeAt = 0

  const itemOf = (itemId: string, now: number): Item => {
    const last = items.at(-1)
    if (last?.itemId === itemId) return last
    const text = earlyTexts.get(itemId) ?? ''
    earlyTexts.delete(itemId)
    const item = { itemId, firstSeq: nextSeq, startsAt: Math.max(freeAt, now), text, frames: 0, done: false }
    items.push(item)
    return item
  }
  const toFrame = (item: Item, payload: Uint8Array, now: number) => {
    item.frames++
    freeAt = Math.max(freeAt, now) + frameMs
    return { seq: nextSeq++, payload }
  }

  return {
    audio(itemId, payload, now) {
      const item = itemOf(itemId, now)
      return chopper.push(payload).map((chunk) => toFrame(item, chunk, now))
    },
    text(itemId, text) {
      const item = items.find((candidate) => candidate.itemId === itemId)
      if (item) item.text = text
      else if (earlyTexts.size < maxEarlyTexts) earlyTexts.set(itemId, text)
    },
    finish(itemId, now) {
      const item = items.find((candidate) => candidate.itemId === itemId)
      earlyTexts.delete(itemId)
      if (!item) return null
      item.done = true
      return item === items.at(-1) ? chopper.rest().map((chunk) => toFrame(item, chunk, now)) : []
    },
    playedUpTo(lastPlayedSeq) {
      const played = items.findIndex((item) => !item.done || lastPlayedSeq < item.firstSeq + item.frames - 1)
      return items.splice(0, played === -1 ? items.length : played).map((item) => heardOf(item, lastPlayedSeq))
    },
    cut(lastPlayedSeq) {
      const cut = items.splice(0).map((item) => heardOf(item, lastPlayedSeq))
      chopper.rest()
      freeAt = 0
      return {
        heard: cut.filter((item) => item.playedMs > 0),
        unheard: cut.filter((item) => item.playedMs === 0).map((item) => item.itemId),
      }
    },
    busy: () => items.length > 0,
    adopt(words, next, now) {
      const itemId = `former-${words.firstSeq}`
      nextSeq = Math.max(nextSeq, next)
      items.push({ ...words, itemId, done: true })
      freeAt = Math.max(now, words.startsAt + words.frames * frameMs)
      return itemId
    },
    newest() {
      const item = items.at(-1)
      if (!item) return null
      const { text, firstSeq, frames, startsAt } = item
      return { text, firstSeq, startsAt, frames: item.done ? frames : null }
    },
    nextSeq: () => nextSeq,
    texts: () => items.map(({ text }) => text).filter((text) => text !== ''),
  }
}

function heardOf(item: Item, lastPlayedSeq: number): Heard {
  const frames = Math.max(0, Math.min(item.frames, lastPlayedSeq - item.firstSeq + 1))
  const complete = item.done && frames === item.frames
  const text = complete ? item.text : heardText(item.text, frames, item.frames)
  return { itemId: item.itemId, text, from: item.startsAt, playedMs: frames * frameMs, complete }
}

/** Cuts sound of any length into whole frames. */
function createChopper(format: AudioFormat) {
  const frameBytes = frameBytesOf(format)
  let left = new Uint8Array(0)
  return {
    push(payload: Uint8Array): Uint8Array[] {
      const bytes = left.length === 0 ? payload : concatenate(left, payload)
      const frames = Math.floor(bytes.length / frameBytes)
      // A copy: the engine may use its buffer again.
      left = new Uint8Array(bytes.subarray(frames * frameBytes))
      return Array.from({ length: frames }, (_, index) => bytes.subarray(index * frameBytes, (index + 1) * frameBytes))
    },
    /** What is left, filled up with silence to one frame. */
    rest(): Uint8Array[] {
      if (left.length === 0) return []
      const frame = silenceOf(format)
      frame.set(left)
      left = new Uint8Array(0)
      return [frame]
    },
  }
}

/** The words that fit into the part that was played, by equal time per letter. */
export function heardText(text: string, playedFrames: number, allFrames: number): string {
  if (playedFrames >= allFrames) return text
  const letters = Math.floor((text.length * playedFrames) / allFrames)
  const end = text.lastIndexOf(' ', letters)
  return text[letters] === ' ' ? text.slice(0, letters) : text.slice(0, Math.max(0, end))
}

function concatenate(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
