/**
 * Owns the judgement whether an answering machine took an outbound call. It takes two signs that do not depend on each other: a person who
 * talks long, a beep alone, music or silence never is one, because hanging up on a person is worse than talking to an answering machine. Pure: time
 * is counted in frames.
 */
import { frameMs } from '../../../model/frame.ts'
import { weightOf, type PhraseWeight } from './key-phrases.ts'
import { createSpeechRuns, type SpeechRun } from './speech-runs.ts'

export type VoicemailSign = 'long_greeting' | 'phrase' | 'beep'

/** Each gives the verdict, once; null: none yet, or none any more. */
export type VoicemailJudge = {
  /** 20 ms of the other side. */
  hear(samples: Int16Array): readonly VoicemailSign[] | null
  /** What the engine understood of the other side, final. */
  read(text: string): readonly VoicemailSign[] | null
  /** The agent began to talk. */
  agentSpoke(): void
}

/** Answering machines greet at once; after this nothing is judged any more. */
const window = 40_000
/** Talking this long at a stretch is rare for who takes a telephone, and so is taking it with a pause like that. */
const longGreeting = 5_000
const latestGreeting = 8_000
/** A greeting that a beep belongs to is over for less than this, its own beep included. */
const beepAfterGreeting = 4_500
/** After its beep an answering machine is silent; a person says something, at the latest when the agent has spoken. */
const silenceAfterBeep = { told: 1_500, otherwise: 6_000 } as const
/** Less than this after a beep is an echo, or the end of the beep. */
const negligible = 200

/** `answeredFor`: ms since the answer that were heard by somebody else. */
export function createVoicemailJudge(deps: {
  readonly beeps: { hear(samples: Int16Array): boolean }
  readonly answeredFor: number
}): VoicemailJudge {
  const runs = createSpeechRuns()
  let phrase: PhraseWeight | null = null
  let greeting: SpeechRun | null = null
  let agentSpokeAt: number | null = null
  let beepAt: number | null = null
  let decided = false

  /** The first thing that is said, long and begun before anybody spoke to it. */
  const isGreeting = ({ from, to }: SpeechRun): boolean => {
    const isFirst = deps.answeredFor + from <= latestGreeting && from <= (agentSpokeAt ?? window) + frameMs
    return isFirst && to - from >= longGreeting && runs.isSpeech()
  }
  /** Somebody said something short and waited: a person, unless the words are those of an answering machine. */
  const tookItShortly = (): boolean => greeting === null && (runs.count() > 1 || !runs.goesOn()) && runs.count() > 0

  const verdict = (): readonly VoicemailSign[] | null => {
    const hasBeeped = beepAt !== null && runs.loudSince() <= negligible
    if (greeting && phrase === 'telling') return ['long_greeting', 'phrase', ...(hasBeeped ? (['beep'] as const) : [])]
    if (beepAt === null || runs.loudSince() > negligible) return null
    const silent = runs.at() - beepAt
    if (phrase === 'telling' && silent >= silenceAfterBeep.told) return ['phrase', 'beep']
    if (silent < silenceAfterBeep.otherwise) return null
    if (phrase === 'hinting' && !tookItShortly()) return ['phrase', 'beep']
    return greeting !== null && beepAt - greeting.to <= beepAfterGreeting ? ['long_greeting', 'beep'] : null
  }
  const decide = (): readonly VoicemailSign[] | null => {
    if (decided) return null
    const signs = verdict()
    decided = signs !== null
    return signs
  }

  return {
    hear(samples) {
      if (decided || deps.answeredFor + runs.at() >= window) return null
      runs.hear(samples)
      const run = runs.newest()
      if (run !== null && runs.count() === 1 && greeting === null && isGreeting(run)) greeting = run
      if (deps.beeps.hear(samples)) {
        beepAt = runs.at()
        runs.forget()
      }
      return beepAt !== null || phrase !== null ? decide() : null
    },
    read(text) {
      if (decided || deps.answeredFor + runs.at() >= window) return null
      const weight = weightOf(text)
      if (weight !== null && phrase !== 'telling') phrase = weight
      return decide()
    },
    agentSpoke() {
      agentSpokeAt ??= runs.at()
    },
  }
}
