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
  key(digit: string): void
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

/** 5 s of the caller's voice. */
const maxFrames = 5_000 / frameMs
const maxResults = 16
const maxKeys = 32
export const maxTyped = 8

export function createSessionBacklog(): SessionBacklog {
  const frames: Uint8Array[] = []
  const keys: string[] = []
  const texts: string[] = []
  let results: Result[] = []
  let most = maxFrames
  return {
    earlier(given) {
      frames.push(...given)
      most = maxFrames + given.length
    },
    frame(payload) {
      frames.push(payload.slice())
      if (frames.length > most) frames.shift()
    },
    expect(given) {
      most += given
    },
    key(digit) {
      if (keys.length < maxKeys) keys.push(digit)
    },
    typed(text) {
      if (texts.length < maxTyped) texts.push(text)
    },
    result(...result) {
      if (results.length < maxResults) results.push(result)
    },
    hasResults: () => results.length > 0,
    spoken() {
      results = []
    },
    behind: () => frames.length * frameMs,
    giveTo(session, hear) {
      most = maxFrames
      for (const payload of frames.splice(0)) hear(session, payload)
      for (const result of results) session.toolResult(...result)
      for (const digit of keys.splice(0)) session.dtmf(digit)
      for (const text of texts.splice(0)) session.typed(text)
    },
    leave: () => ({
      frames: frames.splice(0),
      pressed: keys.splice(0),
      typed: texts.splice(0),
      results: results.splice(0),
    }),
  }
}
