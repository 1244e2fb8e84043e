/** Owns the caller of ten turns on a telephone: a phone made of software, over real SIP and RTP, on a trunk of the service. */
import type { Test } from 'tap'
import { systemClock as clock } from '../../../app/clock.ts'
import { createSyntheticCaller } from '../../../tools/callers/synthetic-caller.ts'
import { createMediaPorts } from '../../../media/rtp/media-ports.ts'
import { openPhone, type CallToPhone, type Phone, type PhoneLine } from '../../../tools/callers/phone.ts'
import { createOpusLibrary } from '../../../media/codecs/opus.ts'
import { createTicker, type Ticker } from '../../../media/ticker/ticker.ts'
import type { EngineLine, EngineStage } from '../engine-stage.ts'
import type { CallerLine } from './caller.ts'

const now = (): number => performance.now()
const ownNumber = '+12025550150'

export type TestPhone = {
  readonly port: number
  /** Calls the number of a line. */
  call(line: EngineLine): Promise<PhoneCaller>
  /** The next call to this phone. */
  called(): Promise<CallToPhone>
  /** For a call that was answered. */
  speakerOn(phoneLine: PhoneLine, line: EngineLine): PhoneCaller
}

export type PhoneCaller = CallerLine & { hangUp(): Promise<void> }

export async function openTestPhone(
  t: Pick<Test, 'teardown'>,
  stage: Pick<EngineStage, 'log' | 'sipPort'>,
): Promise<TestPhone> {
  const { log } = stage
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  const media = createMediaPorts({ bindAddress: '127.0.0.1', externalAddress: null, portRange: [0, 0], now, log })
  const calls: CallToPhone[] = []
  const waiting: ((call: CallToPhone) => void)[] = []
  const onCall = (call: CallToPhone): void => {
    const waiter = waiting.shift()
    if (waiter) waiter(call)
    else calls.push(call)
  }
  const wishes = { codecs: ['PCMU'], encryption: 'none' } as const
  const deps = { address: '127.0.0.1', port: 0, protocol: 'udp', wishes, onCall, media, ticker, clock, log } as const
  const phone: Phone = await openPhone(deps)
  t.teardown(async () => {
    await phone.close()
    await media.close()
    ticker.close()
  })
  const speakerOn = (phoneLine: PhoneLine, line: EngineLine): PhoneCaller => callerOn(phoneLine, line, ticker)
  return {
    port: phone.port,
    async call(line) {
      const phoneLine = await phone.call(`sip:${line.number}@127.0.0.1:${stage.sipPort}`, ownNumber)
      return speakerOn(phoneLine, line)
    },
    called: () =>
      new Promise((resolve) => {
        const call = calls.shift()
        if (call) resolve(call)
        else waiting.push(resolve)
      }),
    speakerOn,
  }
}

/** A telephone shows no words: what the agent has said is told by the webhooks. */
function callerOn(phoneLine: PhoneLine, line: EngineLine, ticker: Ticker): PhoneCaller {
  const { audio } = phoneLine
  const voice = createSyntheticCaller({ caller: phoneLine, audio, opus: createOpusLibrary(), ticker, now })
  const over = phoneLine.ended.finally(() => voice.close())
  return {
    turn: async () => (await line.next('call.transcript')) as { readonly role: string; readonly text: string },
    sound: () => voice.sound(),
    silence: (ms) => voice.silence(ms),
    say: (speech) => voice.say(speech),
    over,
    seen: () => line.events('call.transcript').map(({ role, text }) => `${String(role)}: ${String(text)}`),
    hangUp: () => phoneLine.hangUp(),
  }
}
