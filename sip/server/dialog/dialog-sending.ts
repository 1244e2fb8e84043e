/** Owns one request of ours within a dialog from sending to its final answer, and what the answer changes. RFC 3261 §12.2.1. */
import { hasTag } from '../message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import type { Flow } from '../transport/transport.ts'
import type { DialogAcks } from './dialog-acks.ts'
import { isAlive, type DialogCell, type DialogDeps, type Endings } from './dialog-deps.ts'
import { requestIn, withTargetOf } from './dialog-state.ts'
import { capabilities, withDefaults } from './draft-headers.ts'
import { agreedSession, askForSession } from './session-timer.ts'
import type { Outgoing } from '../send-request.ts'

export type Parts = {
  readonly method: string
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
  readonly sequence: number
}

export type Sending = {
  /** What is offered with it; counts as ours once it is accepted. */
  readonly description: Uint8Array | null
  /** Every answer but 100, and of a repeated one the first. The dialog has taken notice of a 2xx by then. */
  readonly tell: (response: SipResponse, flow: Flow) => void
}

export type DialogSending = {
  /** Complete but for Contact and Via; its CSeq is used up by it. */
  compose(parts: Parts): SipRequest
  dispatch(request: SipRequest, sending: Sending): Promise<Outgoing>
}

const targetRefresh = ['INVITE', 'UPDATE']
const withOurContact = ['INVITE', 'UPDATE', 'REFER', 'SUBSCRIBE', 'NOTIFY']
const credentials = ['Authorization', 'Proxy-Authorization']

export function createDialogSending(
  deps: DialogDeps,
  cell: DialogCell,
  acks: DialogAcks,
  endings: Endings,
): DialogSending {
  async function dispatch(request: SipRequest, sending: Sending): Promise<Outgoing> {
    const { method } = request
    if (method === 'INVITE' || method === 'UPDATE') cell.asking = method
    // Why it fails is told to who sent it.
    if (cell.acking) await cell.acking.catch(() => undefined)
    if (method === 'INVITE') cell.credentials = credentialsIn(request)
    const outgoing = await deps.send({
      request,
      wantsContact: withOurContact.includes(method),
      peer: cell.flow,
      response: (response, flow) => take(request, sending, response, flow),
      terminated: () => undefined,
    })
    cell.flow = outgoing.flow
    return outgoing
  }

  function take({ method }: SipRequest, { description, tell }: Sending, response: SipResponse, flow: Flow): void {
    const { status } = response
    if (status === 100) return
    if (status < 200) return tell(response, flow)
    if (cell.asking === method) cell.asking = null
    const isRepeated = status < 300 && method === 'INVITE' && !acks.answeredInvite(response)
    if (isRepeated) return
    if (status < 300 && targetRefresh.includes(method)) refresh(response, description)
    tell(response, flow)
    settle(method, status)
  }

  function refresh(response: SipResponse, description: Uint8Array | null): void {
    cell.state = withTargetOf(cell.state, response)
    cell.description = description ?? cell.description
    cell.peerTakesUpdate = hasTag(response, 'Allow', 'UPDATE') || cell.peerTakesUpdate
    if (isAlive(cell)) cell.session.set(agreedSession(response))
  }

  /** §12.2.1.2, RFC 5057 §5.1: which final answers end the dialog. A challenged BYE is sent again. */
  function settle(method: string, status: number): void {
    if (method === 'BYE') return void (status === 401 || status === 407 || endings.forget())
    if (!isAlive(cell)) return
    const isLost = status === 481 || (status === 408 && targetRefresh.includes(method))
    if (isLost && ['INVITE', 'UPDATE', 'INFO'].includes(method)) endings.end('the peer knows the call no more')
  }

  return { compose: (parts) => compose(cell, parts), dispatch }
}

function compose(cell: DialogCell, parts: Parts): SipRequest {
  cell.state = { ...cell.state, localSequence: parts.sequence }
  const plain = requestIn(cell.state, parts)
  if (!targetRefresh.includes(parts.method)) return plain
  const current = cell.session.current()
  const session = current ? askForSession(current.seconds, current.weRefresh) : []
  return withDefaults(plain, [...capabilities, ...session])
}

export const credentialsIn = (request: SipRequest): HeaderField[] =>
  request.headers.filter(({ name }) => credentials.includes(name))
