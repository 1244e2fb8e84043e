/** Owns one web call of the load test: always talking, at 20 ms, from prepared Opus packets; it notices when its own marks come back. */
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { WebCallSession } from '../../model/web-call.ts'
import type { OpusDecoder, OpusLibrary } from '../../media/codecs/opus.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { tone } from './echo-engine.ts'

const rateHz = 16000
const rtpStep = 960
/** A mark is one loud frame in silence, often enough to measure and rarely enough to be told from the next. */
const marksEvery = 25
const loud = 1500

export type LoadedCall = {
  /** From the request for the session to the first packet of the agent. */
  readonly firstPacketMs: Promise<number>
  /** How long marks took to come back, ms; only for calls that measure. */
  readonly echoes: readonly number[]
  packets(): { readonly sent: number; readonly received: number }
  /** Resolves when so many packets have come back. */
  echoed(packets: number): Promise<void>
  /** Resolves when the call is over on both sides. */
  end(): Promise<void>
}

/** Every call sends the same packets: what is measured is the service, not our encoder. */
export function preparePackets(opus: OpusLibrary): {
  readonly talk: Uint8Array[]
  /** Two seconds of speech, two of silence. */
  readonly half: Uint8Array[]
  readonly marks: Uint8Array[]
} {
  const encode = (sound: (frame: number) => Int16Array, frames: number): Uint8Array[] => {
    const encoder = opus.createEncoder({ rateHz })
    const packets = Array.from({ length: frames }, (_, frame) => new Uint8Array(encoder.encode(sound(frame))))
    encoder.close()
    return packets
  }
  const speech = new Int16Array(tone(220, 100).buffer)
  const mark = new Int16Array(tone(440, 1).buffer)
  const silence = new Int16Array(320)
  return {
    talk: encode((frame) => speech.subarray(frame * 320, (frame + 1) * 320), 100),
    half: encode((frame) => (frame < 100 ? speech.subarray(frame * 320, (frame + 1) * 320) : silence), 200),
    marks: encode((frame) => (frame % marksEvery === 0 ? mark : silence), marksEvery * 4),
  }
}

export async function placeLoadedCall(deps: {
  readonly url: string
  readonly opus: OpusLibrary
  readonly ticker: Ticker
  /** None: it only listens. */
  readonly packets: readonly Uint8Array[]
  readonly measures: boolean
}): Promise<LoadedCall> {
  const requestedAt = performance.now()
  const answer = await fetch(`${deps.url}/demo/session`, { method: 'POST' })
  if (!answer.ok) throw new Error(`refused with ${answer.status}`)
  const session = WebCallSession.parse(await answer.json())
  const over = Promise.withResolvers<void>()
  const call = await placeWebCall({
    ...session,
    createCaller: () => createWeriftCaller({ codecs: ['opus'] }),
    onMessage: (message) => message.type === 'bye' && over.resolve(),
  })
  const first = Promise.withResolvers<number>()
  const echo = createEchoMeter(deps.measures ? deps.opus.createDecoder({ rateHz }) : null)
  const enough = { packets: 0, reached: () => {} }
  let received = 0
  call.caller.onPacket((packet) => {
    received++
    if (received === enough.packets) enough.reached()
    first.resolve(performance.now() - requestedAt)
    echo.received(packet)
  })
  const audio = await call.caller.connected
  let sent = 0
  const say = (): void => {
    const payload = deps.packets[sent % deps.packets.length] as Uint8Array
    if (sent % marksEvery === 0) echo.marked(performance.now())
    const timestamp = (sent * rtpStep) >>> 0
    call.caller.send({
      payloadType: audio.payloadType,
      marker: sent === 0,
      sequenceNumber: sent & 0xffff,
      timestamp,
      payload,
    })
    sent++
  }
  const leave = deps.packets.length > 0 ? deps.ticker.join(say) : () => undefined
  return {
    firstPacketMs: first.promise,
    echoes: echo.delays,
    packets: () => ({ sent, received }),
    echoed: (packets) => new Promise((reached) => Object.assign(enough, { packets: received + packets, reached })),
    async end() {
      leave()
      echo.close()
      await call.hangUp()
    },
  }
}

/** The first loud packet after a mark is its echo. */
function createEchoMeter(decoder: OpusDecoder | null) {
  const delays: number[] = []
  let markedAt: number | null = null
  return {
    delays,
    marked(at: number): void {
      markedAt = at
    },
    received(packet: RtpPacket): void {
      const samples = decoder?.decode(packet.payload)
      if (!samples || markedAt === null || !samples.some((sample) => Math.abs(sample) > loud)) return
      delays.push(performance.now() - markedAt)
      markedAt = null
    },
    close: () => decoder?.close(),
  }
}
