/**
 * Owns one text that an engine says word for word, in a session for nothing else, and how much of it was heard. A session that dies over it is followed
 * by one that says it again from its beginning.
 */
import type { Clock } from '../../model/clock.ts'
import { storableText } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import type { EngineConfig, EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'
import { createSessionKeeper } from './session-keeper.ts'
import type { Heard } from './utterances.ts'

export type Passage = {
  open(): Promise<void>
  /** The engine's waits count the frames that it hears. */
  hear(silence: Uint8Array): void
  /** Of what it said, this was played. */
  heard(items: readonly Heard[]): void
  /** The engine says nothing more. */
  isSaid(): boolean
  hasSound(): boolean
  /** All of it was played. */
  isWhole(): boolean
  playedMs(): number
  /** Its turn, if anything was heard, and a warning when it was said in other words. */
  facts(source: string, answeredAt: number): CallFact[]
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly engine: VoiceEngine
  readonly clock: Clock
  readonly log: Log
  readonly config: EngineConfig
  readonly text: string
  /** What the engine says of it. */
  take(event: EngineEvent): void
  /** Silences the leg; what was heard comes by `heard`. */
  cut(): Promise<void>
  lost(details: string): void
}

const maxText = 10_000
/** A talk that goes on and owes no reply: the engine says nothing by itself. */
const begun = { history: [{ role: 'user', text: 'Hello.' }], owesReply: false, memory: null } as const

export function createPassage(deps: Deps): Passage {
  const { text } = deps
  let items: Heard[] = []
  let isSaid = false
  let hasSound = false
  let sessions = 0

  const begin = async (): Promise<void> => {
    sessions += 1
    const session = sessions
    if (hasSound) await deps.cut()
    if (session !== sessions) return
    ;[items, isSaid, hasSound] = [[], false, false]
    keeper.sayLast(text)
  }
  const take = (event: EngineEvent): void => {
    if (event.type === 'audio') hasSound = true
    if (event.type === 'finished') isSaid = true
    deps.take(event)
  }
  const keeper = createSessionKeeper({
    engine: deps.engine,
    clock: deps.clock,
    log: deps.log,
    config: { ...deps.config, ...begun, script: null, instructions: null, tools: [] },
    known: () => begun,
    isQuiet: () => false,
    take,
    opened: () => void begin(),
    lost: deps.lost,
  })
  const saidText = (): string =>
    items
      .map((item) => item.text)
      .join(' ')
      .trim()
  const isWhole = (): boolean => isSaid && items.length > 0 && items.every(({ complete }) => complete)
  const turnOf = (source: string, answeredAt: number): CallFact[] => {
    const [first, last] = [items[0], items.at(-1)]
    const told = saidText() || (isWhole() ? text : '')
    if (!first || !last || told === '') return []
    const sinceAnswer = (at: number): number => Math.max(0, Math.round(at - answeredAt))
    const times = { from: sinceAnswer(first.from), to: sinceAnswer(last.from + last.playedMs) }
    const turn = { role: 'agent', text: storableText(told, maxText), ...times, confidence: null, source } as const
    return [{ type: 'turn_committed', turn, memory: null }]
  }
  return {
    open: keeper.open,
    hear: keeper.hear,
    heard(played) {
      items.push(...played)
      for (const { itemId, complete } of played) if (complete) keeper.played(itemId)
    },
    isSaid: () => isSaid,
    hasSound: () => hasSound,
    isWhole,
    playedMs: () => items.reduce((sum, item) => sum + item.playedMs, 0),
    facts(source, answeredAt) {
      const isReworded = isWhole() && saidText() !== '' && lettersOf(saidText()) !== lettersOf(text)
      return [...turnOf(source, answeredAt), ...(isReworded ? [reworded] : [])]
    },
    close: keeper.close,
  }
}

const reworded: CallFact = {
  type: 'warned',
  warning: {
    type: 'DISCLOSURE_REWORDED',
    message: 'The voice provider did not say what was to be said first word for word; the transcript has what it said.',
  },
}

const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
