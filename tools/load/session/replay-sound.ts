/** Owns the sound of a recorded call that is made again: packets of the caller at their times, and what is heard of the service meanwhile. */
import type { CallerSound, Loudness } from '../caller-sound.ts'
import { createLineMeter, type LineQuality } from '../line-meter.ts'
import type { LoadLine } from '../load-line.ts'
import type { LoadTally } from '../load-tally.ts'
import { untilOrStopped } from '../run-load.ts'
import type { Session } from './session-format.ts'

/** Root mean square of 16-bit samples. */
const loud = 300

export type Heard = {
  /** Ms from the answer; null: nothing was heard. */
  audioAfter(): number | null
  stop(): LineQuality
}

const now = (): number => performance.now()

/** A codec that is not decoded here is heard with its first packet. */
export function hear(line: LoadLine, { codec }: Session['head'], sound: CallerSound, tally: LoadTally): Heard {
  const listener: Loudness | null = codec === 'opus' || codec === 'pcmu' ? sound.listener(codec) : null
  const meter = createLineMeter({ codec, clockRateHz: line.audio.clockRateHz })
  const answeredAt = now()
  let audioAfter: number | null = null
  line.onPacket((packet) => {
    if (packet.payloadType !== line.audio.payloadType) return
    const at = now()
    meter.add(packet, at)
    tally.count('packetsReceived')
    if (audioAfter === null && (listener?.of(packet.payload) ?? loud + 1) > loud) audioAfter = at - answeredAt
  })
  return {
    audioAfter: () => audioAfter,
    stop() {
      line.onPacket(() => undefined)
      listener?.close()
      return meter.read()
    },
  }
}

type Playing = { readonly tally: LoadTally; readonly over: AbortSignal; readonly anchor: number }

/** `anchor`: what of the recording is now. Resolves when the last packet is sent or the call is over. */
export async function playSound(line: LoadLine, session: Session, { tally, over, anchor }: Playing): Promise<void> {
  const began = now()
  for (const { at, by, seq, ts, pt, marker, ref } of session.rtp) {
    // What went with the ringing would come all at once now.
    if (by !== 'caller' || ref === undefined || at < anchor) continue
    const wait = began + (at - anchor) - now()
    if (wait > 0) await untilOrStopped(wait, over)
    if (over.aborted) return
    const payload = session.sounds.get(ref) ?? new Uint8Array(0)
    const payloadType = pt === session.head.payloadType ? line.audio.payloadType : pt
    line.send({ payloadType, marker: marker === true, sequenceNumber: seq, timestamp: ts, payload })
    tally.count('packetsSent')
  }
}
