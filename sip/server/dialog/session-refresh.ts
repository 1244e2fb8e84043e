/**
 * Owns refreshing a session when it is our turn: by UPDATE where the peer takes it, else by an INVITE with our last session description.
 * RFC 4028 §7.4, §10; what the peer cannot do now is tried again until the session expires.
 */
import type { Cancel } from '../../../model/clock.ts'
import type { HeaderField, SipResponse } from '../message/message.ts'
import { isAlive, type DialogCell, type DialogDeps } from './dialog-deps.ts'
import type { DialogAcks } from './dialog-acks.ts'
import type { DialogRequests } from './dialog-requests.ts'
import { wantedInterval } from './session-timer.ts'

export type Refresh = {
  begin(): void
  stop(): void
}

/** Ms. */
const tryAgainAfter = 10_000
const noBody = new Uint8Array(0)
const isDescription: HeaderField[] = [{ name: 'Content-Type', value: 'application/sdp' }]

export function createRefresh(deps: DialogDeps, cell: DialogCell, requests: DialogRequests, acks: DialogAcks): Refresh {
  let cancel: Cancel = () => undefined

  function begin(): void {
    cancel()
    if (cell.phase !== 'confirmed') return
    // Whatever is under way refreshes the session as well; if it fails, we are here again.
    if (cell.asking || cell.asked) return again(tryAgainAfter)
    if (cell.peerTakesUpdate) return requests.sendOwn('UPDATE', [], noBody, (response) => settle('UPDATE', response))
    const headers = cell.description ? isDescription : []
    requests.sendOwn('INVITE', headers, cell.description ?? noBody, (response) => settle('INVITE', response))
  }

  function again(ms: number): void {
    cancel()
    cancel = deps.clock.after(ms, begin)
  }

  function settle(method: 'INVITE' | 'UPDATE', response: SipResponse): void {
    const { status } = response
    if (status < 300) {
      if (method === 'INVITE') acks.acknowledge(null).catch(() => undefined)
      return
    }
    if (!isAlive(cell)) return
    if (status === 491) return again(glareWait())
    if (method === 'UPDATE' && [405, 501, 401, 407].includes(status)) cell.peerTakesUpdate = false
    if (status === 422) lengthen(response)
    again(status === 422 || [405, 501].includes(status) ? 0 : tryAgainAfter)
  }

  function lengthen(response: SipResponse): void {
    const current = cell.session.current()
    const wanted = current && wantedInterval(response, current.seconds)
    if (current && wanted) cell.session.set({ ...current, seconds: wanted })
  }

  /** RFC 3261 §14.1: who made the Call-ID waits 2.1 to 4 s, the other up to 2 s, in steps of 10 ms. */
  function glareWait(): number {
    const [least, most] = cell.role === 'uac' ? [2_100, 4_000] : [0, 2_000]
    return least + Math.floor((deps.random() * (most - least)) / 10) * 10
  }

  return { begin, stop: () => cancel() }
}
