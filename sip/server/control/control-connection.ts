/** Owns one connection of an app: its frames in and out, and that nothing is done for it before it has proved the secret. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { SipMessage } from '../message/message.ts'
import { writeMessage } from '../message/write-message.ts'
import { sentFrame, toldFrame, type App, type Passage, type Reply } from './app.ts'
import { readCommand, type Command, type SipCommand } from './command.ts'
import { createFrameReader, frameOf } from './frame-reader.ts'

export type ControlConnection = {
  readonly app: App
  readonly isProved: () => boolean
  /** Idempotent. */
  close(): void
}

export type ControlDeps = {
  readonly host: string
  readonly secret: string
  readonly version: string
  /** Where SIP is listened on, as apps are told: `udp/192.0.2.1:5060,tcp/…`. */
  readonly hostPorts: () => string
  readonly clock: Clock
  readonly log: Log
  readonly newId: () => string
  readonly limits: {
    readonly connections: number
    /** Ms until the secret must have been proved. */
    readonly authenticateWithin: number
    /** Of what an app has not read yet. */
    readonly maxUnreadBytes: number
  }
  readonly command: (app: App, command: SipCommand) => Promise<Reply>
  /** The connection is gone; nothing told reaches it any more. */
  readonly gone: (app: App) => void
}

type Handlers = {
  readonly route: (verb: string) => void
  readonly removeRoute: (verb: string) => void
  /** Once. */
  readonly closed: () => void
}

/** More than any app waits for at once. */
const maxCommandsUnderWay = 10_000

export function createControlConnection(deps: ControlDeps, socket: Socket, handlers: Handlers): ControlConnection {
  const { log } = deps
  const writer = createWriter(deps, socket)
  const app: App = { isOpen: () => socket.writable, tell: writer.tell }
  const perform = createPerformer(deps, app, writer, handlers)
  const reader = createFrameReader(take)
  let proved = false
  const stopWaiting = deps.clock.after(deps.limits.authenticateWithin, () => proved || socket.destroy())

  function take(frame: Buffer): void {
    // Frames behind the one that ended the connection may still be in the reader.
    if (socket.destroyed || socket.writableEnded) return
    const read = readCommand(frame)
    if (!read) return void socket.destroy()
    if (proved) return perform(read.id, read.command)
    if (read.command.kind === 'authenticate') return prove(read.id, read.command.secret)
    refuse(read.id, 'not authenticated')
  }

  function prove(id: string, secret: string): void {
    if (!sameSecret(secret, deps.secret)) return refuse(id, 'incorrect secret')
    proved = true
    stopWaiting()
    log.info('SIP app connected')
    writer.answer(id, 'OK', deps.hostPorts(), deps.version, deps.hostPorts())
  }

  function refuse(id: string, reason: string): void {
    log.warn('SIP app refused', { reason })
    writer.answer(id, 'NO', reason)
    socket.end()
  }

  socket.on('data', (piece: Buffer) => {
    if (!reader.push(piece)) socket.destroy()
  })
  // An error is followed by close, where everything is done.
  socket.on('error', (error) => log.debug('SIP app connection failed', { error }))
  socket.on('end', () => socket.destroy())
  socket.on('close', () => {
    stopWaiting()
    handlers.closed()
  })
  return { app, isProved: () => proved, close: () => void socket.destroy() }
}

type Writer = ReturnType<typeof createWriter>

/** Frames to the app. What it does not read is kept up to a bound. */
function createWriter({ log, newId, clock, limits }: ControlDeps, socket: Socket) {
  function send(frame: Buffer): void {
    if (!socket.writable) return
    socket.write(frame)
    if (socket.writableLength <= limits.maxUnreadBytes) return
    log.error('SIP app does not read; its connection is cut', { unreadBytes: socket.writableLength })
    socket.destroy()
  }

  const wireOf = (message: SipMessage) => ({ id: newId(), at: clock.now(), bytes: writeMessage(message) })
  const answer = (id: string, ...fields: string[]): void =>
    send(frameOf([newId(), 'response', id, ...fields.map(oneField)].join('|')))

  return {
    answer,
    tell: (message: SipMessage, passage: Passage): void => send(toldFrame(passage, wireOf(message))),
    reply(id: string, result: Reply): void {
      if (result.kind === 'refused') answer(id, 'NOK', result.reason)
      else send(sentFrame(id, result, wireOf(result.message)))
    },
  }
}

/** What is done for an app that has proved the secret. */
function createPerformer(deps: ControlDeps, app: App, { answer, reply }: Writer, handlers: Handlers) {
  let underWay = 0

  async function performSip(id: string, command: SipCommand): Promise<void> {
    if (underWay >= maxCommandsUnderWay) return answer(id, 'NOK', 'too many commands under way')
    underWay += 1
    try {
      reply(id, await deps.command(app, command))
    } catch (error) {
      deps.log.error('SIP command failed', { error })
      answer(id, 'NOK', 'internal error')
    } finally {
      underWay -= 1
    }
  }

  return (id: string, command: Command): void => {
    switch (command.kind) {
      case 'authenticate':
        return answer(id, 'OK', deps.hostPorts(), deps.version, deps.hostPorts())
      case 'route':
        handlers.route(command.verb)
        return answer(id, 'OK')
      case 'remove_route':
        handlers.removeRoute(command.verb)
        return answer(id, 'OK')
      case 'ping':
        return answer(id, 'OK', 'pong')
      case 'sip':
        return void performSip(id, command)
      case 'impossible':
        return answer(id, 'NOK', command.reason)
    }
  }
}

/** A field must stay one field of one line. */
const oneField = (text: string): string => text.replace(/[|\r\n]/g, ' ')

/** In constant time, whatever the lengths. */
function sameSecret(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}
