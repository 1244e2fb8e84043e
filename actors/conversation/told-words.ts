/**
 * Owns what a leg is told of the words that the agent is saying, so that whoever takes the call over knows what the caller has heard,
 * and can go on from there (media/leg/agent-words.ts). What is not told yet when this actor dies is said once more.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import type { AgentWords, LegCommand } from '../../model/leg.ts'

export type ToldWords = {
  /** The newest words; null: there are none. Told when they begin and are whole, and sometimes in between. */
  item(spoken: Spoken | null, now: number): void
  /** What the engine remembers has changed while the newest words are played, of which all sound is there: it counts behind them. */
  remembers(): void
  /** These are the last words of the call. */
  ends(nextAction: string | null): void
  /** What was told may not have arrived. */
  again(): void
}

/** `startsAt`: ms since the epoch. `frames`: null until all of them are there. */
export type Spoken = Pick<AgentWords, 'text' | 'firstSeq' | 'frames'> & { readonly startsAt: number }

type Deps = {
  readonly bus: Bus
  readonly callId: CallId
  readonly epoch: number
  /** Ms since the epoch. */
  readonly answeredAt: number
  memory(): Json
}

/** Ms. */
const tellEvery = 200
/** Of what the leg takes. */
const maxText = 10_000

/** As the turn of the words will have it. */
export const sinceAnswerOf = (startsAt: number, answeredAt: number): number =>
  Math.max(0, Math.round(startsAt - answeredAt))

export function createToldWords({ bus, callId, epoch, answeredAt, memory }: Deps): ToldWords {
  let newest: Spoken | null = null
  let ending: AgentWords['ends']
  let told: Spoken | null = null
  /** As it was when the words began, or when it came behind them: what comes while their sound still does is of words to come. */
  let remembered: Json = null
  let toldMemory: Json | undefined
  let toldAt = -Infinity

  const tell = (): void => {
    if (newest === null || newest.text.length > maxText) return
    const { startsAt, ...words } = newest
    told = newest
    const isNew = remembered !== toldMemory
    toldMemory = remembered
    const command: LegCommand = {
      type: 'says',
      epoch,
      words: {
        ...words,
        from: sinceAnswerOf(startsAt, answeredAt),
        ...(isNew && { memory: toldMemory }),
        ...(ending && { ends: ending }),
      },
    }
    bus.publish(subjectsOf(callId).legCommand, toBytes(command))
  }
  const isDue = ({ firstSeq, frames, text }: Spoken, now: number): boolean =>
    firstSeq !== told?.firstSeq || frames !== told.frames || (text !== told.text && now - toldAt >= tellEvery)
  return {
    item(spoken, now) {
      if (spoken && spoken.firstSeq !== newest?.firstSeq) remembered = memory()
      newest = spoken
      if (spoken === null || !isDue(spoken, now)) return
      toldAt = now
      tell()
    },
    remembers() {
      if (newest === null || newest.frames === null) return
      remembered = memory()
      tell()
    },
    ends(nextAction) {
      ending = { nextAction }
      tell()
    },
    again() {
      toldMemory = undefined
      tell()
    },
  }
}
