/**
 * Owns one utterance of a caller while it is spoken: sound to the recogniser in pieces, the words so far, and what it came to. Where any words will
 * do and no phrase was said, the whole of it is heard again by dictation.
 */
import { joined } from '../../../media/pcm/joined.ts'
import type { Pause, Understanding } from './grammar.ts'
import type { Recognition } from './recognition.ts'
import type { Meaning } from '../../script/phrases.ts'
import type { HeardWords } from './recognition-messages.ts'
import { isNoise, worstPart, worstScore, worstValue } from './recognition-sound.ts'

/** What one utterance came to. */
export type Understood = {
  /** Empty when it was no speech, or none that fits. */
  readonly text: string
  readonly meaning: Meaning | null
  /** 0 to 1. */
  readonly confidence: number
  /** A cough, a bang or nothing at all. */
  readonly isNoise: boolean
}

export type CallerSpeech = {
  /** The sound is the caller's own to change. */
  add(samples: Int16Array): void
  frames(): number
  /** What was said so far is an answer, or the beginning of one. */
  hasAnswer(): boolean
  /** The silence that is the end of it, after what was said so far. */
  pause(): Pause
  /** Never rejects. */
  end(): Promise<Understood>
  drop(): void
}

type Deps = {
  readonly recognition: Recognition
  readonly understanding: Understanding<Meaning>
  readonly gain: number
  /** A whole phrase that has stayed the same for two pieces of sound. */
  onText(text: string, meaning: Meaning): void
}

/** The recogniser gets 60 ms at a time. */
const pieceFrames = 3
const bestScore = -12
const leastConfidence = 0.3
const mostOfDictation = 0.6
/** Values of less are read back, and who wants to end the call is asked. */
const mostOfSecondLook = 0.6
/** What no answer is has a part at the second look that fits worse than this. */
const worstPartAgain = -45

export function createCallerSpeech({ recognition, understanding, gain, onText }: Deps): CallerSpeech {
  let piece: Int16Array[] = []
  let frames = 0
  let pause = understanding.pauseAfter([])
  let last = ''
  let shown = ''
  const whole: Int16Array[] = []

  const utterance = recognition.listen(understanding.grammar, gain, (words) => {
    const understood = understanding.understand(words)
    const text = understood?.text ?? ''
    pause = understanding.pauseAfter(words)
    const isSteady = text !== '' && text === last && text !== shown
    last = text
    if (!isSteady || understood === null) return
    shown = text
    onText(text, understood.meaning)
  })
  const feed = (): void => {
    if (piece.length > 0) utterance.feed(joined(piece))
    piece = []
  }
  return {
    add(samples) {
      piece.push(samples)
      if (understanding.dictated !== null) whole.push(samples)
      frames++
      if (piece.length >= pieceFrames) feed()
    },
    frames: () => frames,
    hasAnswer: () => last !== '' || pause === 'long',
    pause: () => pause,
    async end() {
      feed()
      const result = better(await utterance.end(), understanding)
      if (result.meaning !== null || result.isNoise || understanding.dictated === null) return result
      return dictated(await recognition.dictate(joined(whole), gain), understanding.dictated)
    },
    drop: () => utterance.drop(),
  }
}

/** What was not understood may have been at the second look. */
function better(heard: HeardWords | null, understanding: Understanding<Meaning>): Understood {
  const first = understood(heard, understanding)
  if (first.meaning !== null || heard?.again === undefined || heard.again.worst < worstPartAgain) return first
  const second = understood(heard.again, understanding)
  if (second.meaning === null) return first
  return { ...second, confidence: Math.min(mostOfSecondLook, second.confidence) }
}

function understood(heard: HeardWords | null, { understand, spotted }: Understanding<Meaning>): Understood {
  const words = heard?.words ?? []
  const score = heard?.score ?? Number.NEGATIVE_INFINITY
  const fits = score >= worstScore && (heard?.worst ?? 0) >= worstPart
  const fitting = fits ? understand(words) : null
  if (fitting !== null && (fitting.meaning.kind !== 'value' || score >= worstValue))
    return { confidence: confidenceOf(score), ...fitting, isNoise: false }
  const caught = spotted(words)
  if (caught !== null) return { confidence: leastConfidence, ...caught, isNoise: false }
  // Of what was lost on the way nobody knows that it was noise.
  return { text: '', meaning: null, confidence: 0, isNoise: heard !== null && isNoise(heard) }
}

/** Of many words some are always wrong, and nothing tells which. */
function dictated(heard: HeardWords | null, meaningOf: (text: string) => Meaning): Understood {
  const text = heard?.words.join(' ') ?? ''
  if (heard === null || text === '' || heard.score < worstScore)
    return { text: '', meaning: null, confidence: 0, isNoise: false }
  const confidence = Math.min(mostOfDictation, confidenceOf(heard.score))
  return { text, meaning: meaningOf(text), confidence, isNoise: false }
}

/** In a straight line from the worst score that is accepted to the best. */
function confidenceOf(score: number): number {
  const share = Math.max(0, Math.min(1, (score - worstScore) / (bestScore - worstScore)))
  return Math.round(100 * (leastConfidence + (1 - leastConfidence) * share)) / 100
}
