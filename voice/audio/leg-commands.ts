/** Owns how a leg answers its actor: commands are checked, those of an actor that was taken over are refused. Never throws, always answers. */
import type { BusMessage } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { LegCommand, type LegReply } from '../../model/leg.ts'
import type { StartCommand } from './leg-media.ts'

export type LegActions = {
  readonly isConnected: () => boolean
  /** The media is gone, or about to be. */
  readonly isOver: () => boolean
  readonly start: (command: StartCommand) => void
  /** Answers as `lastPlayedSeq`. */
  readonly flush: () => number
  /** Resolves with the recorded milliseconds; never rejects. */
  readonly close: (reason: string) => Promise<number | null>
}

export type LegCommands = {
  readonly answer: (message: BusMessage) => void
  /** Frames of this epoch are played: its actor has started the leg and nobody has taken over since. */
  readonly isCurrent: (epoch: number) => boolean
}

export function createLegCommands(actions: LegActions): LegCommands {
  /** The newest epoch that was seen: the fence. */
  let fence = -1
  let started: StartCommand | null = null

  // An actor that got no answer in time asks again: what it started goes on undisturbed.
  const start = (command: StartCommand): LegReply => {
    if (actions.isOver()) return refusal('the media is gone')
    if (JSON.stringify(command) !== JSON.stringify(started)) actions.start(command)
    started = command
    return { type: 'started' }
  }

  const carryOut = (command: LegCommand): LegReply | Promise<LegReply> => {
    if (command.epoch < fence) return refusal('another actor has taken over')
    fence = command.epoch
    switch (command.type) {
      case 'start':
        return start(command)
      case 'flush':
        // What was played is counted per actor: one that has not started has played nothing.
        return { type: 'flushed', lastPlayedSeq: started?.epoch === command.epoch ? actions.flush() : -1 }
      case 'close':
        return actions.close(command.reason).then((recordedMs) => ({ type: 'closed', recordedMs }))
      case 'ping':
        return { type: 'here', connected: actions.isConnected() && !actions.isOver() }
    }
  }

  return {
    answer(message) {
      const command = LegCommand.safeParse(fromBytes(message.payload)).data
      if (!command) return reply(message, refusal('not a command'))
      void Promise.resolve(carryOut(command)).then((answer) => reply(message, answer))
    },
    isCurrent: (epoch) => epoch === fence && started?.epoch === epoch,
  }
}

const refusal = (details: string): LegReply => ({ type: 'refused', details })

const reply = (message: BusMessage, answer: LegReply): void => message.respond(toBytes(answer))
