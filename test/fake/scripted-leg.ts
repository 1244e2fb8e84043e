/** Owns a leg without media: answers commands over the bus as a real one does, plays frames when the test says so. */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { LegCommand, type LegEvent, type LegReply } from '../../model/leg.ts'

export type ScriptedLeg = {
  readonly commands: LegCommand[]
  event(event: LegEvent): void
  /** One frame of the caller's voice. */
  speak(epoch: number): void
  /** Plays the next `frames` frames of what waits, and says `drained` when nothing is left. */
  play(frames: number): void
  waiting(): number
  close(): void
}

export function createScriptedLeg(bus: Bus, callId: CallId): ScriptedLeg {
  const subjects = subjectsOf(callId)
  const commands: LegCommand[] = []
  const queue: number[] = []
  let lastPlayedSeq = -1
  let spoken = 0
  const json = (message: unknown) => new TextEncoder().encode(JSON.stringify(message))
  const replyTo = (command: LegCommand): LegReply => {
    if (command.type === 'start') return { type: 'started' }
    if (command.type === 'ping') return { type: 'here', connected: true }
    queue.length = 0
    return command.type === 'flush' ? { type: 'flushed', lastPlayedSeq } : { type: 'closed', recordedMs: null }
  }
  const subscriptions = [
    bus.subscribe(subjects.legCommand, (message) => {
      const command = LegCommand.parse(JSON.parse(new TextDecoder().decode(message.payload)))
      commands.push(command)
      message.respond(json(replyTo(command)))
    }),
    bus.subscribe(subjects.down, (message) => void queue.push(decodeFrame(message.payload)?.seq ?? -1)),
  ]
  const event = (happened: LegEvent): void => bus.publish(subjects.legEvent, json(happened))
  return {
    commands,
    event,
    speak: (epoch) =>
      bus.publish(
        subjects.up,
        encodeFrame({ epoch, seq: spoken, timestamp: spoken++ * 20, payload: new Uint8Array(640) }),
      ),
    play(frames) {
      const played = queue.splice(0, frames)
      lastPlayedSeq = played.at(-1) ?? lastPlayedSeq
      if (queue.length === 0 && played.length > 0) event({ type: 'drained', lastPlayedSeq })
    },
    waiting: () => queue.length,
    close: () => subscriptions.forEach((subscription) => subscription.close()),
  }
}
