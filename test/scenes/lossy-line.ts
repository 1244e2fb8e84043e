/** Owns the way between a telephone and the service when it is a bad one: real sockets that lose packets as a test says, in both directions. */
import type { Test } from 'tap'
import { systemClock as clock } from '../../app/clock.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import type { MediaPorts } from '../../media/rtp/media-ports.ts'
import { createRtpEndpoint } from '../../media/rtp/rtp-endpoint.ts'
import { isRtcp } from '../../media/rtp/rtp-wire.ts'
import { freeEvenPort, openSocketPair, type SocketPair, type UdpPort } from '../../media/rtp/socket-pair.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import type { Log } from '../../model/log.ts'
import { openPhone, type CallToPhone, type PhoneLine } from '../../tools/callers/phone.ts'
import { createSyntheticCaller } from '../../tools/callers/synthetic-caller.ts'
import { until } from './in-time.ts'

export type Loss = {
  /** One packet of so many is lost on the way to the service, and from it; null: none. */
  readonly to: number | null
  readonly from: number | null
  /** False: the telephone sends no RTCP, as many do. */
  readonly reports: boolean
}

export type LossyPhone = {
  readonly port: number
  /** Calls, and speaks without a pause until it hangs up. */
  call(uri: string): Promise<Speaking>
  called(): Promise<Speaking>
}

export type Speaking = {
  /** Both sides have heard of each other's reports, and of the answer to them: so long a round trip takes to be known. */
  readonly reported: Promise<unknown>
  hangUp(): Promise<void>
}

const now = (): number => performance.now()
const ownNumber = '+12025550150'

export async function openLossyPhone(t: Pick<Test, 'teardown'>, log: Log, loss: Loss): Promise<LossyPhone> {
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  const { media, reported } = createLossyPorts(log, loss)
  const calls: CallToPhone[] = []
  const phone = await openPhone({
    address: '127.0.0.1',
    port: 0,
    protocol: 'udp',
    media,
    ticker,
    clock,
    log,
    wishes: { codecs: ['PCMA'], encryption: 'none' },
    onCall: (call) => void calls.push(call),
  })
  t.teardown(async () => {
    await phone.close()
    await media.close()
    ticker.close()
  })
  const speakOn = (line: PhoneLine): Speaking => {
    const voice = createSyntheticCaller({ caller: line, audio: line.audio, opus: createOpusLibrary(), ticker, now })
    const hangUp = async () => {
      await line.hangUp()
      voice.close()
    }
    return {
      // A short call has none, and nobody waits for it.
      get reported() {
        return until(reported)
      },
      hangUp,
    }
  }
  return {
    port: phone.port,
    call: async (uri) => speakOn(await phone.call(uri, ownNumber)),
    called: async () => speakOn(await (await until(() => calls.shift())).answer()),
  }
}

/** For one call at a time. */
function createLossyPorts(log: Log, loss: Loss) {
  const endpoints = new Set<{ close(): Promise<void> }>()
  const heard = { reports: 0, answers: 0 }
  const media: MediaPorts = {
    async open(handlers) {
      const pair = await openSocketPair('127.0.0.1', await freeEvenPort('127.0.0.1'))
      const lossy: SocketPair = { ...pair, rtp: losing(pair.rtp, loss, heard), rtcp: losing(pair.rtcp, loss, heard) }
      const closed = () => void endpoints.delete(endpoint)
      const endpoint = createRtpEndpoint({ pair: lossy, address: '127.0.0.1', handlers, now, log, closed })
      endpoints.add(endpoint)
      return endpoint
    },
    addressFor: (family) => (family === 4 ? '127.0.0.1' : null),
    inUse: () => endpoints.size,
    close: async () => void (await Promise.all([...endpoints].map((endpoint) => endpoint.close()))),
  }
  return { media, reported: () => heard.answers > 0 }
}

/** RTCP comes and goes by either port (RFC 5761), and none of it is lost. */
function losing(port: UdpPort, { to, from, reports }: Loss, heard: { reports: number; answers: number }): UdpPort {
  let [sent, came] = [0, 0]
  const isLost = (count: number, one: number | null) => one !== null && count % one === one - 1
  return {
    ...port,
    send(datagram, peer) {
      const isReport = isRtcp(datagram)
      if (isReport && heard.reports > 0) heard.answers++
      if (isReport ? reports : !isLost(sent++, to)) port.send(datagram, peer)
    },
    onDatagram: (listener) =>
      port.onDatagram((datagram, peer) => {
        const isReport = isRtcp(datagram)
        if (isReport) heard.reports++
        if (isReport || !isLost(came++, from)) listener(datagram, peer)
      }),
  }
}
