/** Owns making the leg of a phone call on its line, in the thread that carries its sound. */
import type { LegDeps, Leg } from '../leg/leg.ts'
import type { PhoneCallLine, PhoneLeg, PhoneLegWanted } from './media-plane.ts'
import { openPhoneLine, type OpenPhoneLine, type PhoneLineDeps } from './phone-line.ts'

export type CreateLeg = (
  line: Pick<LegDeps, 'callId' | 'isFurther' | 'signaling' | 'connectWithin' | 'onClosed'>,
) => Leg

export const createPhoneLines =
  (deps: PhoneLineDeps, createLeg: CreateLeg): (() => Promise<PhoneCallLine>) =>
  async () => {
    const line = await openPhoneLine(deps)
    return { ...line, begin: (wanted) => beginLeg(line, wanted, createLeg) }
  }

function beginLeg(line: OpenPhoneLine, wanted: PhoneLegWanted, createLeg: CreateLeg): PhoneLeg {
  const { callId, isFurther = false, signaling, connectWithin, onClosed } = wanted
  const leg = createLeg({ callId, isFurther, signaling, connectWithin, onClosed })
  line.tell(leg.handlers)
  leg.attach({
    send: line.transport.send,
    stats: line.transport.stats,
    tap: (told) => line.transport.tap?.(told),
    close(reason) {
      wanted.hangUp(reason)
      return line.close(reason)
    },
  })
  return { handlers: leg.handlers, dtmf: leg.dtmf, opened: Promise.resolve(), close: leg.close }
}
