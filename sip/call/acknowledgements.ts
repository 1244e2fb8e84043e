/**
 * Owns which ACK belongs to which INVITE of a call. The library tells of every ACK of a dialog: one that comes late, again, or close in
 * front of the next INVITE does not answer our offer. RFC 3261 §13.3.1.4, §17.1.1.3.
 */
import { readCSeq } from '../server/message/numbered-fields.ts'
import type { MessageIn, RequestIn, SipDialog } from '../stack-types.ts'

export type Acknowledgements = {
  /** Told once, of the ACK of our 2xx to this INVITE. `offers`: the 2xx has an offer of ours, and the ACK its answer. */
  expect(invite: MessageIn, offers: boolean, acknowledged: (ack: RequestIn) => void): void
  /** Our offer has no answer yet, so none of theirs can be answered. RFC 3264 §4. */
  isOfferOpen(): boolean
}

type Expected = { readonly offers: boolean; readonly acknowledged: (ack: RequestIn) => void }

export function createAcknowledgements(dialog: SipDialog): Acknowledgements {
  /** By the number of the INVITE. */
  const waiting = new Map<number, Expected>()
  dialog.on('ack', (ack) => {
    const number = numberOf(ack)
    const expected = waiting.get(number)
    waiting.delete(number)
    expected?.acknowledged(ack)
  })
  return {
    expect: (invite, offers, acknowledged) => void waiting.set(numberOf(invite), { offers, acknowledged }),
    isOfferOpen: () => [...waiting.values()].some(({ offers }) => offers),
  }
}

const numberOf = (message: MessageIn): number => readCSeq(message.get('cseq') ?? '')?.number ?? -1
