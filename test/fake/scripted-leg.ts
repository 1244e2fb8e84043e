/** Owns a leg without media: answers commands over the bus as a real one does, plays frames when the test says so. */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { LegCommand, type LegEvent, type LegReply } from '../../model/leg.ts'

export type ScriptedLeg = {
  readonly commands: LegCommand[]
  event(event: LegEvent): void
  /** What the commands of this type are answered from now on; as a leg does that can do all of it when not told. */
  answer(type: LegCommand['type'], reply: LegReply): void
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
  const answers = new Map<LegCommand['type'], LegReply>()
  let isConnected = true
  let ended: LegEvent | null = null
  const replyTo = (command: LegCommand): LegReply => {
    const { type } = command
    if (type === 'flush' || type === 'close') queue.length = 0
    switch (command.type) {
      case 'start':
        return { type: 'started', hears: command.hears[0]!, speaks: command.speaks[0]! }
      case 'flush':
        return { type: 'flushed', lastPlayedSeq }
      case 'close':
        return { type: 'closed', recordedMs: null }
      case 'ping':
        return { type: 'here', connected: isConnected && ended === null, ended }
      case 'catch_up':
        return { type: 'caught_up', played: lastPlayedSeq, taken: queue.at(-1) ?? lastPlayedSeq }
      case 'answer':
      case 'listens':
      case 'settled':
      case 'says':
      case 'keep':
      case 'record':
      case 'supervise':
      case 'send_dtmf':
      case 'transfer':
        return { type: 'accepted' }
    }
  }
  const subscriptions = [
    bus.subscribe(subjects.legCommand, (message) => {
      const command = LegCommand.parse(JSON.parse(new TextDecoder().decode(message.payload)))
      commands.push(command)
      const reply = replyTo(command)
      message.respond(json(answers.get(command.type) ?? reply))
    }),
    bus.subscribe(subjects.down, (message) => void queue.push(decodeFrame(message.payload)?.seq ?? -1)),
  ]
  const event = (happened: LegEvent): void => {
    if (happened.type === 'ringing') isConnected = false
    if (happened.type === 'connected') isConnected = true
    if (['disconnected', 'dial_failed', 'transferred'].includes(happened.type)) ended = happened
    bus.publish(subjects.legEvent, json(happened))
  }
  return {
    commands,
    event,
    answer: (type, reply) => void answers.set(type, reply),
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
