/** Owns loss and jitter of a line, both ways, by the seed: which packets go missing and how late the others are follows from their number. */
import type { Clock } from '../../model/clock.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { createRandom } from '../chaos/random.ts'
import type { Line } from '../callers/line-sound.ts'

type Disturbance = { readonly loss: number; readonly jitter: number; readonly seed: number }

/** Packets that are late at once; further ones are lost, as in a queue that is full. */
const mostLate = 200

/** The line itself where nothing disturbs it. */
export function disturbed(line: Line, { loss, jitter, seed }: Disturbance, clock: Pick<Clock, 'after'>): Line {
  if (loss === 0 && jitter === 0) return line
  const way = (number: number, pass: (packet: RtpPacket) => void): ((packet: RtpPacket) => void) => {
    const random = createRandom(seed * 2 + number)
    let late = 0
    return (packet) => {
      const isLost = random.next() < loss
      const delay = random.next() * jitter
      if (isLost || late >= mostLate) return
      if (delay < 1) return pass(packet)
      late++
      // The payload is the sender's again when this returns.
      const copy = { ...packet, payload: packet.payload.slice() }
      clock.after(delay, () => {
        late--
        pass(copy)
      })
    }
  }
  return {
    send: way(0, (packet) => line.send(packet)),
    onPacket: (listener) => line.onPacket(way(1, listener)),
  }
}
