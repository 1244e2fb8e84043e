/**
 * Owns the callers of the voice bench, in a process of their own: they call the service, talk with it until they hang up, and measure how long they
 * waited.
 */
import process from 'node:process'
import { createTicker } from '../../media/ticker/ticker.ts'
import { systemClock } from '../../app/clock.ts'
import { createRandom } from '../fake/random.ts'
import { openRawSipCaller, type CalledService, type RawCall } from '../../tools/callers/raw-sip-caller.ts'
import { openVoicePhone, type VoicePhone } from './voice-phone.ts'
import { noFigures, talk, type TalkFigures } from './voice-talk.ts'
import { spokenUtterances, vowelsFor, vowelsForDetector, type TurnFinding, type Utterance } from './voice-utterance.ts'

/** `words` are said by three voices in turn; `nothing`: they only listen. */
export type CallersWish = CalledService & {
  readonly says:
    { readonly words: readonly string[] } | { readonly vowels: TurnFinding | 'for our detector' } | 'nothing'
}

/** Since they were asked last. */
export type CallersTake = TalkFigures & { readonly calls: number; readonly clientLate: number }

type Call = { readonly phone: VoicePhone; readonly call: RawCall; readonly over: Promise<void> }

const atOnce = 5
const wish = JSON.parse(process.argv[2] ?? '{}') as CallersWish
const utterances = await utterancesOf(wish.says)
const caller = await openRawSipCaller(wish)
const { after } = systemClock
const ticker = createTicker({ now: () => performance.now(), after })
let calls: Call[] = []
let figures = noFigures()
let seed = 0

async function utterancesOf(says: CallersWish['says']): Promise<readonly Utterance[]> {
  if (says === 'nothing') return []
  if ('words' in says) return spokenUtterances(says.words, ['slt', 'awb', 'rms'])
  return [says.vowels === 'for our detector' ? await vowelsForDetector() : vowelsFor(says.vowels)]
}

async function connect(count: number): Promise<void> {
  for (let begun = 0; begun < count; begun += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, count - begun) }, connectOne)
    calls.push(...(await Promise.all(some)).filter((call) => call !== null))
  }
}

/** One that does not come about is left out, and the take tells how many there are. */
async function connectOne(): Promise<Call | null> {
  const phone = await openVoicePhone(ticker)
  try {
    const call = await caller.call(phone.port)
    phone.begin(call.remote)
    const random = createRandom(++seed)
    const over =
      utterances.length === 0 ? Promise.resolve() : talk({ phone, utterances, random, figures: () => figures })
    return { phone, call, over }
  } catch (error) {
    await phone.close()
    console.error('a call did not come about:', error)
    return null
  }
}

async function hangUp(): Promise<void> {
  for (let call = calls.pop(); call; call = calls.pop()) {
    await call.phone.close()
    await Promise.all([call.over, call.call.hangUp()])
  }
}

function take(): CallersTake {
  const taken = { ...figures, calls: calls.length, clientLate: ticker.lateness().overTenMs }
  figures = noFigures()
  return taken
}

async function answer(question: string): Promise<void> {
  const count = /^connect (\d+)$/.exec(question)?.[1]
  if (count !== undefined) await connect(Number(count))
  if (question === 'hang up' || question === 'close') await hangUp()
  if (question === 'close') {
    ticker.close()
    await caller.close()
    return process.disconnect()
  }
  process.send?.(take())
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(String(question)))
process.send?.(true)
