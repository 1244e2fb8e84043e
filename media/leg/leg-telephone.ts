/**
 * Owns what a leg does as a telephone: it is answered, presses keys and passes its caller on, as far as the signaling under it can. Every
 * refusal is a reason for people; null is consent.
 */
import type { LegSignaling } from '../../model/rtp-transport.ts'

export type LegTelephone = {
  /** Asked again, it changes nothing. */
  readonly answer: () => string | null
  readonly press: (digits: string) => string | null | Promise<string | null>
  /** Resolves when the other side has said whether it will try; never rejects. */
  readonly transfer: (to: string) => Promise<string | null>
}

export type LegTelephoneDeps = {
  /** Null: a browser. */
  readonly signaling: LegSignaling | null
  readonly isConnected: () => boolean
  readonly isOver: () => boolean
  /** Null: no telephone events were negotiated. False: too many keys wait already. */
  readonly press: (digits: string) => boolean | null
}

const gone = 'the media is gone'

export function createLegTelephone({ signaling, isConnected, isOver, press }: LegTelephoneDeps): LegTelephone {
  const pressOtherwise = async (digits: string) =>
    (await signaling?.sendDtmf(digits)) ? null : 'the other side agreed to no way of pressing keys'

  return {
    answer() {
      if (isOver()) return gone
      if (!signaling) return 'this is no telephone call'
      if (!isConnected()) signaling.answer()
      return null
    },
    press(digits) {
      if (isOver()) return gone
      if (!isConnected()) return 'nobody has answered yet'
      const taken = press(digits)
      if (taken === null) return pressOtherwise(digits)
      return taken ? null : 'too many keys wait to be pressed'
    },
    async transfer(to) {
      if (isOver()) return gone
      if (!signaling) return 'a call from a browser cannot be passed on'
      const answer = await signaling.transfer(to)
      return answer.accepted ? null : answer.details
    },
  }
}
