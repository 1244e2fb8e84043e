/** Owns a telephone edge without SIP: takes requests to dial, and answers for legs as the test says. */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { dialSubject, DialRequest, type DialReply } from '../../model/dial.ts'
import type { CallId } from '../../model/ids.ts'
import { LegCommand, type LegEvent, type LegReply } from '../../model/leg.ts'
import { inTime } from '../scenes/in-time.ts'

type Type = LegCommand['type']
type CommandOf<Wanted extends Type> = Extract<LegCommand, { type: Wanted }>

export type ScriptedPhone = {
  readonly commands: LegCommand[]
  /** `missed`: the bus loses it. */
  event(event: LegEvent, missed?: boolean): void
  /** The first command of this type that was not yet waited for; rejects where none comes. */
  next<Wanted extends Type>(type: Wanted): Promise<CommandOf<Wanted>>
  close(): void
}

export type PhoneReplies = Partial<Record<Type, LegReply>>

const bytes = (message: unknown) => new TextEncoder().encode(JSON.stringify(message))
const json = (payload: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(payload))
const endings: readonly LegEvent['type'][] = ['disconnected', 'dial_failed', 'transferred']

/** Consents to everything that `replies` says nothing about; commands of an older epoch are refused. */
export function createScriptedPhone(bus: Bus, callId: CallId, replies: PhoneReplies = {}): ScriptedPhone {
  const subjects = subjectsOf(callId)
  const commands: LegCommand[] = []
  const seen = new Set<LegCommand>()
  let notice = () => {}
  let fence = 0
  let connected = false
  let ringing: string | null = null
  let ended: LegEvent | null = null

  const replyTo = (command: LegCommand): LegReply => {
    const { type } = command
    if (type === 'ping')
      return { type: 'here', connected, ended, ...(ringing !== null && !connected && !ended && { ringing }) }
    if (command.type === 'start') return { type: 'started', hears: command.hears[0]!, speaks: command.speaks[0]! }
    if (type === 'flush') return { type: 'flushed', lastPlayedSeq: -1 }
    return type === 'close' ? { type: 'closed', recordedMs: null } : { type: 'accepted' }
  }
  const subscription = bus.subscribe(subjects.legCommand, (message) => {
    const command = LegCommand.parse(json(message.payload))
    if (command.epoch < fence) return message.respond(bytes({ type: 'refused', details: 'taken over' }))
    fence = command.epoch
    commands.push(command)
    message.respond(bytes(replies[command.type] ?? replyTo(command)))
    notice()
  })
  return {
    commands,
    event(event, missed = false) {
      if (event.type === 'ringing') ringing = event.providerStatus
      connected ||= event.type === 'connected'
      if (endings.includes(event.type)) ended = event
      if (!missed) bus.publish(subjects.legEvent, bytes(event))
    },
    async next<Wanted extends Type>(type: Wanted) {
      for (;;) {
        const found = commands.find(
          (command): command is CommandOf<Wanted> => command.type === type && !seen.has(command),
        )
        if (found) {
          seen.add(found)
          return found
        }
        const news = new Promise<void>((resolve) => (notice = resolve))
        await inTime(`the command ${type}`, news, () => commands.map((command) => command.type))
      }
    },
    close: () => subscription.close(),
  }
}

/** One edge that takes all requests; the leg of a call is there when it has taken the call's. */
export function createScriptedEdge(
  bus: Bus,
  options: { reply?: DialReply; silent?: boolean; replies?: PhoneReplies } = {},
) {
  const requests: DialRequest[] = []
  const phones = new Map<string, ScriptedPhone>()
  let notice = () => {}
  const subscription = bus.subscribe(
    dialSubject,
    (message) => {
      const request = DialRequest.parse(json(message.payload))
      requests.push(request)
      if (!options.reply)
        phones.set(request.callId, createScriptedPhone(bus, request.callId as CallId, options.replies))
      if (!options.silent) message.respond(bytes(options.reply ?? { type: 'dialing' }))
      notice()
    },
    { queue: 'edges' },
  )
  return {
    requests,
    async phone(callId: CallId): Promise<ScriptedPhone> {
      for (;;) {
        const phone = phones.get(callId)
        if (phone) return phone
        const news = new Promise<void>((resolve) => (notice = resolve))
        await inTime(`the leg of ${callId}`, news, () => [...phones.keys()])
      }
    },
    close() {
      subscription.close()
      for (const phone of phones.values()) phone.close()
    },
  }
}
