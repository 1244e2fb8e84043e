/** Owns the agent's voice on its way to the leg: frames out, what was heard back, turns of what was heard. */
import type { Bus } from '../../model/bus.ts'
import type { AudioFormat } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { commandLeg } from '../node/leg-link.ts'
import { sinceAnswerOf, type ToldWords } from './told-words.ts'
import { createUtterances, type Adopted, type Heard } from './utterances.ts'
import type { TurnLog } from './turn-log.ts'
import type { TurnTiming } from './turn-timing.ts'
import type { UnbrokenLine } from './unbroken-line.ts'

export type AgentVoice = {
  audio(itemId: string, payload: Uint8Array, now: number): void
  /** All of it so far. */
  text(itemId: string, text: string, now: number): void
  finish(itemId: string, now: number): void
  /** Commits what has been heard completely by now and returns its items. */
  playedUpTo(lastPlayedSeq: number): string[]
  /** The engine remembers something else from here on. */
  remembers(): void
  /** Silences the leg and commits what was heard; the last utterance of it, or null when nothing was. */
  cut(): Promise<{ readonly itemId: string; readonly playedMs: number } | null>
  speaking(): boolean
  /** Words that a former actor's engine said, and that are being played. */
  adopt(words: readonly Adopted[], nextSeq: number, now: number): void
  /** Texts of what was sent and is not heard out yet. */
  onItsWay(): string[]
  /** Something was sent to the caller. */
  hasSpoken(): boolean
  /** Of the next frame. */
  nextSeq(): number
}

type Deps = {
  readonly callId: CallId
  readonly epoch: number
  readonly bus: Bus
  readonly engine: VoiceEngine
  readonly speaks: AudioFormat
  /** Of its first frame: the leg takes none that is older than what it played. */
  readonly firstSeq: number
  /** Ms since the epoch. */
  readonly answeredAt: number
  readonly turnLog: TurnLog
  readonly timing: Pick<TurnTiming, 'take' | 'forget'>
  readonly words: ToldWords
  readonly line: Pick<UnbrokenLine, 'send' | 'played' | 'cut'>
}

export function createAgentVoice(deps: Deps): AgentVoice {
  const { callId, epoch, bus, turnLog, timing, line, words } = deps
  const utterances = createUtterances(deps.speaks, deps.firstSeq)
  let played = -1
  let hasSpoken = false

  const send = (frames: readonly { seq: number; payload: Uint8Array }[]): void => {
    hasSpoken ||= frames.length > 0
    line.send(frames)
  }
  const commit = commitOf(deps)

  return {
    audio(itemId, payload, now) {
      turnLog.agentBegins(itemId)
      send(utterances.audio(itemId, payload, now))
      words.item(utterances.newest(), now)
    },
    text(itemId, text, now) {
      utterances.text(itemId, text)
      turnLog.showAgent(itemId, text, now)
      words.item(utterances.newest(), now)
    },
    finish(itemId, now) {
      const rest = utterances.finish(itemId, now)
      if (rest) send(rest)
      else turnLog.forget(itemId)
      words.item(utterances.newest(), now)
    },
    playedUpTo(lastPlayedSeq) {
      played = Math.max(played, lastPlayedSeq)
      line.played(played)
      const heard = utterances.playedUpTo(played)
      heard.forEach(commit)
      return heard.map((item) => item.itemId)
    },
    remembers() {
      if (utterances.busy()) words.remembers()
    },
    async cut() {
      const reply = await commandLeg(bus, callId, { type: 'flush', epoch })
      if (reply?.type === 'flushed') played = Math.max(played, reply.lastPlayedSeq)
      line.cut()
      const { heard, unheard } = utterances.cut(played)
      heard.forEach(commit)
      for (const itemId of unheard) {
        turnLog.forget(itemId)
        timing.forget(itemId)
      }
      const last = heard.at(-1)
      return last ? { itemId: last.itemId, playedMs: last.playedMs } : null
    },
    speaking: () => utterances.busy(),
    adopt(spoken, nextSeq, now) {
      hasSpoken = true
      for (const word of spoken) {
        turnLog.agentBegins(utterances.adopt(word, nextSeq, now))
        words.item(utterances.newest(), now)
      }
    },
    onItsWay: () => utterances.texts(),
    hasSpoken: () => hasSpoken,
    nextSeq: utterances.nextSeq,
  }
}

/** What was heard of an utterance becomes a turn. */
function commitOf({ turnLog, timing, engine, answeredAt }: Pick<Deps, 'turnLog' | 'timing' | 'engine' | 'answeredAt'>) {
  return (heard: Heard): void => {
    const latency = timing.take(heard.itemId)
    if (heard.text === '') return turnLog.forget(heard.itemId)
    const from = sinceAnswerOf(heard.from, answeredAt)
    const to = from + heard.playedMs
    const turn = { role: 'agent', text: heard.text, from, to, confidence: null, source: engine.name } as const
    turnLog.commit(heard.itemId, { ...turn, ...(latency && { latency }) })
    turnLog.forget(heard.itemId)
  }
}
