/**
 * Owns what one hosted talk is at a moment, what comes to it and what it wants: the words of its machine (talk-machine.ts). The state of each part
 * has a file of its own, which alone says how it changes. Times are frames of the caller's line.
 */
import type { JsonObject } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import type { EngineEvent, EngineSession, Said } from '../../../model/voice-engine.ts'
import type { EffectiveConfig } from '../../../model/worker.ts'
import { initialEnding, type Ending } from './ending.ts'
import { initialIdle, type IdlePrompts } from './idle-prompts.ts'
import { initialKeys, type Keys } from './keys.ts'
import { initialLastWords, type LastWords } from './last-words.ts'
import { initialOpening, type Opening, type OpeningSetting } from './opening.ts'
import { initialResumption, type Resumption } from './resumption.ts'
import { initialToolWork, type ToolWork } from './tool-work.ts'
import { initialTyped, type Typed } from './typed-words.ts'
import { initialTurns, replyExpected, type TurnTaking } from './turn-taking.ts'
import type { WireEvent } from './wire.ts'

export type TalkState = {
  /** `finished`: what the caller said is still told, and no more. `hung_up`: that and what the model makes of it is waited for. */
  readonly phase: 'talking' | 'hung_up' | 'finished' | 'closed'
  /** Frames of the caller's line so far. */
  readonly now: number
  readonly turns: TurnTaking
  readonly opening: Opening
  readonly tools: ToolWork
  readonly keys: Keys
  readonly typed: Typed
  readonly idle: IdlePrompts
  readonly resumption: Resumption
  readonly ending: Ending
  readonly lastWords: LastWords
}

export type TalkSetting = {
  readonly worker: EffectiveConfig
  readonly opening: OpeningSetting
  /** Said while a tool takes its time; null: nothing. */
  readonly filler: string | null
}

/** What the caller heard of what was cut off, as in EngineSession. */
export type HeardPart = Parameters<EngineSession['interrupt']>[0]

/** What the session is asked for, as in EngineSession, and what the wire says. */
export type TalkEvent =
  | { readonly type: 'begun' }
  /** 20 ms of the caller's line have gone to the wire. */
  | { readonly type: 'frame' }
  | { readonly type: 'interrupted'; readonly heard: HeardPart }
  | { readonly type: 'played'; readonly itemId: string }
  | { readonly type: 'dtmf'; readonly digit: string }
  | { readonly type: 'typed'; readonly text: string }
  | { readonly type: 'say'; readonly text: string }
  | { readonly type: 'say_last'; readonly text: string }
  | { readonly type: 'tool_result'; readonly id: string; readonly name: string; readonly result: ToolResult }
  | Instruct
  | Recall
  /** The caller's line is closed; frames of silence follow. */
  | { readonly type: 'hung_up' }
  | { readonly type: 'closed' }
  | { readonly type: 'wire'; readonly event: WireEvent }

/** As in Wire, and: */
export type TalkAction =
  | { readonly type: 'emit'; readonly event: EngineEvent }
  | { readonly type: 'reply'; readonly hint: string | null }
  | { readonly type: 'say'; readonly text: string }
  | { readonly type: 'tell'; readonly text: string }
  | {
      readonly type: 'answer_tool'
      readonly id: string
      readonly name: string
      readonly output: JsonObject
      readonly wantsReply: boolean
    }
  | { readonly type: 'interrupt'; readonly heard: HeardPart }
  | Instruct
  | Recall
  | { readonly type: 'warn'; readonly message: string }
  /** Nothing more is waited for. */
  | { readonly type: 'heard_out' }
  /** The last one of a talk. */
  | { readonly type: 'close' }

export type Advanced = { readonly state: TalkState; readonly actions: readonly TalkAction[] }

export const initialTalk: TalkState = {
  phase: 'talking',
  now: 0,
  turns: initialTurns,
  opening: initialOpening,
  tools: initialToolWork,
  keys: initialKeys,
  typed: initialTyped,
  idle: initialIdle,
  resumption: initialResumption,
  ending: initialEnding,
  lastWords: initialLastWords,
}

export const step = (
  state: TalkState,
  change: Partial<TalkState> = {},
  ...actions: readonly TalkAction[]
): Advanced => ({
  state: { ...state, ...change },
  actions,
})

export const followedBy = (before: Advanced, rule: (state: TalkState) => Advanced): Advanced => {
  const after = rule(before.state)
  return { state: after.state, actions: [...before.actions, ...after.actions] }
}

export const endOfTalk = (state: TalkState, ...actions: readonly TalkAction[]): Advanced =>
  step(state, { phase: 'closed' }, ...actions, { type: 'close' })

export const emit = (event: EngineEvent): TalkAction => ({ type: 'emit', event })

/** The model is asked to speak, and awaited. */
export const asked = (state: TalkState, action: TalkAction): Advanced =>
  step(state, { turns: replyExpected(state.turns, state.now) }, action)

/** `added`: what is new in them; absent: all of it. */
type Instruct = { readonly type: 'instruct'; readonly instructions: string; readonly added?: string }
type Recall = { readonly type: 'recall'; readonly said: Said }
