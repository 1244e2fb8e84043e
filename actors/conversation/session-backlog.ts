/** Owns what a session that begins is given: what the caller said, pressed and typed while there was none, and results that nobody has spoken about. */
import { frameMs } from '../../model/frame.ts'
import type { EngineSession } from '../../model/voice-engine.ts'

type Result = Parameters<EngineSession['toolResult']>

/** What no session was given. */
export type LeftBehind = {
  readonly frames: readonly Uint8Array[]
  readonly pressed: readonly string[]
  readonly typed: readonly string[]
  readonly results: readonly Result[]
}

export type SessionBacklog = {
  frame(payload: Uint8Array): void
  /** What was kept for the session from before, however much: the frames are the backlog's from here on. */
  earlier(frames: readonly Uint8Array[]): void
  /** There is room for so many more until the next session. */
  expect(frames: number): void
  dtmf(digit: string): void
  typed(text: string): void
  /** Of a tool. A session that dies before it has spoken about it leaves it to the next. */
  result(...result: Result): void
  hasResults(): boolean
  /** The agent speaks: about the results there are, too. */
  spoken(): void
  /** Ms of the caller's voice. */
  behind(): number
  /** `hear` gives it one frame. */
  giveTo(session: EngineSession, hear: (session: EngineSession, payload: Uint8Array) => void): void
  /** Nothing is kept any more. */
  leave(): LeftBehind
}

/** One after the other. */
export const leftTogether = (before: LeftBehind | undefined, after: LeftBehind): LeftBehind =>
  before
    ? {
        frames: [...before.frames, ...after.frames],
        pressed: [...before.pressed, ...after.pressed],
        typed: [...before.typed, ...after.typed],
        results: [...before.results, ...after.results],
      }
    : after

/** 5 s of the caller's voice. */
const maxFrames = 5_000 / frameMs
const maxResults = 16
const maxKeys = 32
export const maxTyped = 8

export function createSessionBacklog(): SessionBacklog {
  /** What the caller did, in order. */
  let waiting: Waiting[] = []
  let frames = 0
  let results: Result[] = []
  let most = maxFrames
  const isFull = (kind: 'digit' | 'text', limit: number): boolean =>
    waiting.filter((entry) => kind in entry).length >= limit
  return {
    earlier(given) {
      waiting.push(...given.map((payload) => ({ payload })))
      frames += given.length
      most = maxFrames + given.length
    },
    frame(payload) {
      waiting.push({ payload: payload.slice() })
      frames++
      if (frames <= most) return
      waiting.splice(
        waiting.findIndex((entry) => 'payload' in entry),
        1,
      )
      frames--
    },
    expect(given) {
      most += given
    },
    dtmf(digit) {
      if (!isFull('digit', maxKeys)) waiting.push({ digit })
    },
    typed(text) {
      if (!isFull('text', maxTyped)) waiting.push({ text })
    },
    result(...result) {
      if (results.length < maxResults) results.push(result)
    },
    hasResults: () => results.length > 0,
    spoken() {
      results = []
    },
    behind: () => frames * frameMs,
    giveTo(session, hear) {
      most = maxFrames
      frames = 0
      const given = waiting
      waiting = []
      for (const entry of given) {
        if ('payload' in entry) hear(session, entry.payload)
        if ('digit' in entry) session.dtmf(entry.digit)
        if ('text' in entry) session.typed(entry.text)
      }
      for (const result of results) session.toolResult(...result)
    },
    leave() {
      const left = waiting
      waiting = []
      frames = 0
      return {
        frames: left.flatMap((entry) => ('payload' in entry ? [entry.payload] : [])),
        pressed: left.flatMap((entry) => ('digit' in entry ? [entry.digit] : [])),
        typed: left.flatMap((entry) => ('text' in entry ? [entry.text] : [])),
        results: results.splice(0),
      }
    },
  }
}

type Waiting = { readonly payload: Uint8Array } | { readonly digit: string } | { readonly text: string }
