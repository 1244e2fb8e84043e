/** Owns a caller who listens: answers each question when it has been asked, speaks into one of them, and falls silent with the end of the call. */
import type { EmbeddedEngine } from '../../../voice/engines/embedded/engine.ts'
import { inTime } from '../in-time.ts'
import { exchanges, goodbye } from './conversation.ts'

/** What a caller does on any line. */
export type CallerLine = {
  /** The next turn that was committed, of either side, and not told yet; waits for it. */
  turn(): Promise<{ readonly role: string; readonly text: string }>
  /** Resolves when the agent is heard. */
  sound(): Promise<void>
  /** Resolves when the agent has been silent for so many ms. */
  silence(ms: number): Promise<void>
  /** Speaks, 16-bit at 16 kHz; resolves when the speech begins. */
  say(speech: Int16Array): Promise<unknown>
  /** The call is over. */
  readonly over: Promise<unknown>
  /** For who waits in vain. */
  seen(): unknown
}

const voice = 'slt'
const rateHz = 16_000
/** Of the agent, that ends what it says. */
const pause = 300
/** The text of speech that the embedded engine did not understand. */
export const unclear = '[unclear]'
export const maxRepeats = 2
/** So much of a question is heard before it is spoken into. */
const listenFor = 1_500

export type Speeches = readonly Int16Array[]

/** What the caller says, in a synthetic voice. */
export const speechesOf = (embedded: EmbeddedEngine): Promise<Speeches> =>
  Promise.all(exchanges.map(({ says }) => embedded.speak(says, voice)))

export async function holdTenTurns(line: CallerLine, speeches: Speeches): Promise<void> {
  for (const [index, { asks, interrupts }] of exchanges.entries()) {
    const speech = speeches[index]!
    if (interrupts) await speakInto(line, speech)
    else await answer(line, asks, speech)
    for (let times = 1; times <= maxRepeats; times++) {
      // A question that is spoken into may be told of behind the words that cut it.
      const understood = await howUnderstood(line, interrupts && times === 1 ? null : asks)
      if (understood === 'well') break
      if (understood === 'badly') await heard(line, asks)
      await speakTo(line, asks, speech)
    }
  }
  await heard(line, goodbye)
  await inTime('the end of the call', line.over, line.seen)
}

/** Resolves when the agent has said this, to its end; before it there may be an apology. */
export async function heard(line: Pick<CallerLine, 'turn' | 'seen'>, text: string): Promise<void> {
  const said = async (): Promise<void> => {
    for (;;) {
      const turn = await line.turn()
      if (turn.role === 'agent' && turn.text.endsWith(text)) return
    }
  }
  await inTime(text, said(), line.seen)
}

/** What a person does: on a machine under load, words may come in pieces or not at all, and the agent asks again. */
async function howUnderstood(line: CallerLine, asks: string | null): Promise<'well' | 'badly' | 'not'> {
  const said = async (): Promise<'well' | 'badly' | 'not'> => {
    for (;;) {
      const { role, text } = await line.turn()
      if (role === 'user') return text === unclear ? 'badly' : 'well'
      if (asks !== null && isAskedAgain(text, asks)) return 'not'
    }
  }
  return inTime('what the caller said', said(), line.seen)
}

/** Of who was not heard: `Are you still there? On which day?` */
export const isAskedAgain = (text: string, asks: string): boolean => text !== asks && text.endsWith(asks)

async function answer(line: CallerLine, asks: string, speech: Int16Array): Promise<void> {
  await heard(line, asks)
  await speakTo(line, asks, speech)
}

async function speakTo(line: CallerLine, asks: string, speech: Int16Array): Promise<void> {
  await inTime(`silence after ${asks}`, line.silence(pause))
  await inTime('the caller to speak', line.say(speech))
}

/** The agent has to fall silent while the caller speaks, and is not waited for. */
async function speakInto(line: CallerLine, speech: Int16Array): Promise<void> {
  await inTime('the agent to begin', line.sound(), line.seen)
  const listening = (listenFor * rateHz) / 1000
  const words = new Int16Array(listening + speech.length)
  words.set(speech, listening)
  await inTime('the caller to speak', line.say(words))
  await inTime('the agent to fall silent', line.silence(pause), line.seen)
}
