/** Owns how a leg answers its actor: commands are checked, those of an actor that was taken over are refused. Never throws, always answers. */
import type { BusMessage } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { LegCommand, type ClosedLeg, type LegEvent, type LegReply, type RecordedParts } from '../../model/leg.ts'
import type { LineFormats } from '../../model/frame.ts'
import type { InTurn } from '../../model/in-turn.ts'
import type { KeptFrames } from './kept-frames.ts'
import { createSaidWords } from './agent-words.ts'
import type { StartCommand } from './leg-media.ts'
import type { LegTelephone } from './leg-telephone.ts'

export type LegActions = {
  readonly isConnected: () => boolean
  /** The media is gone, or about to be. */
  readonly isOver: () => boolean
  /** As it was told; null: it does not ring, or does not any more. */
  readonly ringing: () => string | null
  /** What was told at the end, null when nothing was. */
  readonly ended: () => LegEvent | null
  /** Throws when the media cannot begin. `goesOn`: behind what is queued, if that is of the same format. */
  readonly start: (command: StartCommand, goesOn: boolean) => LineFormats & { readonly isBehind: boolean }
  readonly kept: KeptFrames
  /** The process of the leg. */
  readonly node: string | null
  readonly isFurther: boolean
  /** Answers as `lastPlayedSeq`. */
  readonly flush: () => number
  /** Answers as `played` and `taken`. */
  readonly rewind: () => { readonly played: number; readonly taken: number }
  /** Of what follows. */
  readonly record: (parts: RecordedParts) => void
  readonly supervise: (wanted: { readonly listens: boolean; readonly voice: boolean }) => void
  readonly telephone: LegTelephone
  readonly inTurn: InTurn
  /** Something of the leg threw: it is over. */
  readonly failed: (error: unknown) => void
  /** Never rejects. */
  readonly close: (reason: string) => Promise<ClosedLeg>
}

export type LegCommands = {
  readonly answer: (message: BusMessage) => void
  /** Frames of this epoch are played: its actor has started the leg and nobody has taken over since. */
  readonly isCurrent: (epoch: number) => boolean
  readonly isStarted: () => boolean
}

export function createLegCommands(actions: LegActions): LegCommands {
  const { telephone } = actions
  /** The newest epoch that was seen: the fence. */
  let fence = -1
  let started: Started | null = null
  /** A supervisor speaks in the agent's place. */
  let isLed = false
  /** Commands that have not had their turn: those behind them wait too. */
  let waiting = 0
  const said = createSaidWords()

  const begin = (command: StartCommand): Omit<Started, 'command'> => {
    const { epoch, node, goesOn = false, numbersKeys = false, settled } = command
    const isNext = started !== null && started.command.epoch !== epoch
    if (isNext && settled && settled.epoch === started?.command.epoch) actions.kept.settled(settled)
    const { isBehind, ...formats } = actions.start(command, goesOn && isNext)
    const left = isBehind ? leftWords() : {}
    if (isNext) said.clear()
    const isElsewhere = node !== undefined && actions.node !== null && node !== actions.node
    const asks = node !== undefined
    const listening = { epoch, hears: formats.hears, isElsewhere, asks, numbersKeys }
    actions.kept.hides(command.recording?.parts === 'none')
    const { kept, waits, keeps } = actions.kept.begin(listening)
    return { formats, waits: { ...(waits && { waits: { kept } }), ...(keeps && { keeps: true as const }) }, left }
  }
  const leftWords = (): Left => {
    const { played, taken } = actions.rewind()
    return { left: { words: said.left(taken), nextSeq: taken + 1, lastPlayedSeq: played } }
  }
  const flush = (): number => {
    const lastPlayedSeq = actions.flush()
    said.cut(lastPlayedSeq)
    return lastPlayedSeq
  }

  // An actor that got no answer in time asks again: what it started goes on undisturbed.
  const start = (command: StartCommand): LegReply => {
    if (actions.isOver()) return refusal('the media is gone')
    const isAgain = started !== null && JSON.stringify(command) === JSON.stringify(started.command)
    const now = isAgain && started !== null ? started : { command, ...begin(command) }
    started = now
    return { type: 'started', ...now.formats, ...now.waits, ...now.left }
  }

  const here = (): LegReply => {
    const isOver = actions.isOver()
    const ringing = isOver ? null : actions.ringing()
    return {
      type: 'here',
      connected: actions.isConnected() && !isOver,
      ended: isOver ? actions.ended() : null,
      ...(ringing !== null && { ringing }),
      ...(actions.node !== null && { node: actions.node }),
      ...(started !== null && { startedBy: started.command.epoch }),
      ...(actions.kept.size() > 0 && { kept: actions.kept.size() }),
      ...(actions.isFurther && { isFurther: true as const }),
    }
  }

  const carryOut = async (command: LegCommand): Promise<LegReply> => {
    if (command.epoch < fence) return refusal('another actor has taken over')
    fence = command.epoch
    switch (command.type) {
      case 'start':
        return start(command)
      case 'flush':
        // What was played is counted per actor: one that has not started has played nothing.
        return { type: 'flushed', lastPlayedSeq: started?.command.epoch === command.epoch ? flush() : -1 }
      case 'says':
        if (started?.command.epoch === command.epoch) said.says(command.words)
        return consent(null)
      case 'listens':
        actions.kept.listens()
        return consent(null)
      case 'catch_up':
        if (started?.command.epoch !== command.epoch) return refusal('the leg has not been started')
        return { type: 'caught_up', first: actions.kept.again(command.heard + 1), ...actions.rewind() }
      case 'settled':
        actions.kept.settled(command)
        return consent(null)
      case 'keep':
        actions.kept.keep(command.keys)
        return consent(null)
      case 'record':
        actions.kept.hides(command.parts === 'none')
        actions.record(command.parts)
        return consent(null)
      case 'supervise':
        // Nothing was said first yet, and nothing is heard or recorded.
        if (command.voice && started === null) return refusal('the leg has not been started')
        // What was said to a supervisor is for no agent.
        if (isLed && !command.voice) actions.kept.settled({ seq: Infinity })
        isLed = command.voice
        actions.supervise(command)
        return consent(null)
      case 'close':
        return { type: 'closed', ...(await actions.close(command.reason)) }
      case 'answer':
        return consent(telephone.answer())
      case 'send_dtmf':
        return consent(await telephone.press(command.digits))
      case 'transfer':
        return consent(await telephone.transfer(command.to))
      case 'ping':
        return here()
    }
  }

  const refused = (error: unknown): LegReply => {
    actions.failed(error)
    return refusal('internal error')
  }

  const perform = (command: LegCommand, message: BusMessage): void =>
    void carryOut(command)
      .catch(refused)
      .then((answer) => reply(message, answer))

  return {
    answer(message) {
      const command = LegCommand.safeParse(fromBytes(message.payload)).data
      if (!command) return reply(message, refusal('not a command'))
      if (waiting === 0 && !isLong(command)) return perform(command, message)
      waiting++
      actions.inTurn(() => {
        waiting--
        perform(command, message)
      })
    },
    isCurrent: (epoch) => epoch === fence && started?.command.epoch === epoch,
    isStarted: () => started !== null,
  }
}

type Waits = Pick<Extract<LegReply, { readonly type: 'started' }>, 'waits' | 'keeps'>
type Left = Pick<Extract<LegReply, { readonly type: 'started' }>, 'left'>
type Started = {
  readonly command: StartCommand
  readonly formats: LineFormats
  readonly waits: Waits
  readonly left: Left
}

/** It makes the sound of the leg. */
const isLong = ({ type }: LegCommand): boolean => type === 'start'

const refusal = (details: string): LegReply => ({ type: 'refused', details })

const consent = (objection: string | null): LegReply => (objection === null ? { type: 'accepted' } : refusal(objection))

const reply = (message: BusMessage, answer: LegReply): void => message.respond(toBytes(answer))
