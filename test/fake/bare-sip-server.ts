/**
 * Owns a SIP server as an app sees one that adds nothing by itself and asks no questions: every message of the app is noted as it was drafted,
 * completed by what drachtio-srf cannot do without, and every message of the network is one that the test tells. A drachtio-server polices
 * and adds less than the embedded server does; this one, nothing at all.
 */
import { once } from 'node:events'
import net from 'node:net'
import type { Test } from 'tap'
import { sentFrame, toldFrame, type Passage } from '../../sip/server/control/app.ts'
import { readCommand, type SipCommand } from '../../sip/server/control/command.ts'
import { createFrameReader, frameOf } from '../../sip/server/control/frame-reader.ts'
import { headerOf, withHeader } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'
import type { Control } from '../../sip/stack.ts'
import { until } from '../scenes/in-time.ts'

export type BareServer = {
  readonly control: Control
  /** The next draft of the app that matches and was not taken. */
  next(matches: (draft: SipMessage) => boolean): Promise<Drafted>
  /** Messages of the network, in one piece. */
  tell(...told: readonly Told[]): void
}

/** `draft`: a request as it was completed. `transactionId`: of it, or of the request that is answered. */
export type Drafted = Pick<SipCommand, 'transactionId' | 'dialogId'> & { readonly draft: SipMessage }
export type Told = Partial<Passage> & { readonly text: string }

const flow = {
  protocol: 'udp',
  remote: { address: '127.0.0.1', port: 5070 },
  local: { address: '127.0.0.1', port: 5060 },
  connection: 0,
} as const
/** Of what the server made by itself. */
export const nobody = { ...flow, remote: { address: '', port: 0 } }

const contact = '<sip:127.0.0.1:5060>'
let count = 0

export async function openBareServer(t: Test): Promise<BareServer> {
  const drafted: Drafted[] = []
  const sockets: net.Socket[] = []
  const server = net.createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => socket.destroy())
    const reader = createFrameReader((frame) => {
      const { id, command } = readCommand(frame)!
      if (command.kind !== 'sip')
        return void socket.write(frameOf(`${++count}|response|${id}|OK${wordsOf(command.kind)}`))
      const { draft, dialogId } = command
      const message = draft.kind === 'request' ? completeRequest(draft, dialogId) : completeResponse(draft)
      const transactionId = draft.kind === 'request' ? `ours${++count}` : command.transactionId
      drafted.push({ draft: message, transactionId, dialogId })
      const named = dialogId || dialogIdOf(message)
      socket.write(sentFrame(id, { kind: 'sent', message, flow, transactionId, dialogId: named }, wireOf(message)))
    })
    socket.on('data', (piece) => reader.push(piece))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    sockets.forEach((socket) => socket.destroy())
    await closed
  })
  return {
    control: { host: '127.0.0.1', port: (server.address() as net.AddressInfo).port, secret: 'any' },
    next: (matches) =>
      until(() => {
        const at = drafted.findIndex(({ draft }) => matches(draft))
        return at === -1 ? null : drafted.splice(at, 1)[0]
      }),
    tell(...told) {
      const frames = told.map(({ text, ...passage }) => {
        const parsed = parseMessage(Buffer.from(text, 'latin1'))
        if (parsed.kind !== 'message') throw new Error('no SIP message')
        const { message } = parsed
        const usual = { source: 'network', flow, transactionId: `theirs${++count}`, isNew: false } as const
        return toldFrame({ ...usual, dialogId: '', ...passage }, wireOf(message))
      })
      sockets.at(-1)?.write(Buffer.concat(frames))
    },
  }
}

const wordsOf = (kind: string): string =>
  ({ authenticate: '|udp/127.0.0.1:5060|v0.9.10|udp/127.0.0.1:5060', ping: '|pong' })[kind] ?? ''

const wireOf = (message: SipMessage) => ({ id: `frame${++count}`, at: 0, bytes: writeMessage(message) })

export const dialogIdOf = (message: SipMessage): string =>
  `${headerOf(message, 'Call-ID')};from-tag=${/;tag=([^;]+)/.exec(headerOf(message, 'From') ?? '')?.[1]}`

/** Within a dialog it is of the same call. */
function completeRequest(draft: SipRequest, dialogId: string): SipRequest {
  const defaults = [
    ['From', '<sip:us@127.0.0.1>'],
    ['To', `<${draft.uri}>`],
    ['Call-ID', dialogId.split(';from-tag=')[0] || `call${++count}`],
    ['CSeq', `1 ${draft.method}`],
    ['Contact', contact],
  ] as const
  const complete = defaults.reduce((message, [name, value]) => withDefault(message, name, value), draft)
  return withTag(complete, 'From')
}

const completeResponse = (draft: SipResponse): SipResponse => withTag(withDefault(draft, 'Contact', contact), 'To')

const withDefault = <Message extends SipMessage>(message: Message, name: string, value: string): Message =>
  headerOf(message, name) === null ? withHeader(message, name, value) : message

function withTag<Message extends SipMessage>(message: Message, name: 'From' | 'To'): Message {
  const value = headerOf(message, name) ?? ''
  return value.includes(';tag=') ? message : withHeader(message, name, `${value};tag=us`)
}
