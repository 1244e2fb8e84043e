/** Owns how the core of the server sees one connected app, and what an app is told of messages on the network. */
import type { SipMessage, SipRequest, SipResponse } from '../message/message.ts'
import type { Flow } from '../transport/transport.ts'
import { frameOf } from './frame-reader.ts'

/** A message that passed the network, or that the server made by itself. */
export type Passage = {
  /** `application`: the app need not answer it. */
  readonly source: 'network' | 'application'
  readonly flow: Flow
  /** `unsolicited`: of no transaction that the app knows. */
  readonly transactionId: string
  /** Empty: outside dialogs. */
  readonly dialogId: string
  /** A request outside dialogs: by which end of ours it came. */
  readonly isNew: boolean
}

export type App = {
  /** False: the connection is gone, or about to be. */
  readonly isOpen: () => boolean
  tell(message: SipMessage, passage: Passage): void
}

/** What became of a command. */
export type Reply =
  | {
      readonly kind: 'sent'
      readonly message: SipRequest | SipResponse
      readonly flow: Flow
      readonly transactionId: string
      /** Of responses; empty where there is no dialog. */
      readonly dialogId: string
    }
  | { readonly kind: 'refused'; readonly reason: string }

type Wire = { readonly id: string; readonly at: number; readonly bytes: Uint8Array }

export function toldFrame(passage: Passage, wire: Wire): Buffer {
  const { flow, source } = passage
  const place = [wire.bytes.length, ...endOf(flow), timeOf(wire.at)].join('|')
  const local = passage.isNew ? `${bare(flow.local.address)}|${flow.local.port}|` : ''
  const leader = `${wire.id}|sip|${source}|${place}|${passage.transactionId}|${passage.dialogId}|${local}`
  return frameOf(leader, wire.bytes)
}

export function sentFrame(commandId: string, reply: Reply & { kind: 'sent' }, wire: Wire): Buffer {
  const place = [wire.bytes.length, ...endOf(reply.flow), timeOf(wire.at)].join('|')
  const dialog = reply.message.kind === 'response' ? `|${reply.dialogId}|` : ''
  const leader = `${wire.id}|response|${commandId}|OK|application|${place}|${reply.transactionId}${dialog}|Msg sent:|`
  return frameOf(leader, wire.bytes)
}

const endOf = ({ protocol, remote }: Flow) => [protocol, bare(remote.address), remote.port]

/** Fields are cut at `|`; a zone of IPv6 may hold anything. */
const bare = (address: string): string => address.replace(/%.*$/, '')

/** Time of day in UTC with microseconds. */
const timeOf = (at: number): string => `${new Date(at).toISOString().slice(11, 23)}000`
