/**
 * Owns whether what sounds is music: at a beginning, where little is known yet and no caller may be lost; while somebody is taken for speaking,
 * where half a second tells more; and of the line, which brings music again once it has brought some. Pure: time is counted in frames of 20 ms.
 */
import { createVoiceOdds } from './voice-odds.ts'

export type Music = {
  /** One frame at 16 kHz, its root mean square in dB beside it. `isHeard`: it stands out from the noise of the line. */
  hear(samples: Int16Array, level: number, isHeard: boolean): void
  /** What would begin now is music, as far as that can be told. */
  isLikely(): boolean
  /** The line is known to carry music, and this is a voice over it. */
  isVoice(): boolean
  /** The line is known to carry music, and this is some of it. */
  isKnown(): boolean
  /** Somebody is taken for speaking from this frame on. */
  begin(): void
  /** Whoever was taken for speaking since `begin` is music. `isAnswer`: a recogniser has found words in it. */
  isTaken(isAnswer: boolean): boolean
}

/** Odds are logarithms, see voice-odds.ts; of so many frames their mean counts. */
const newestFrames = 5
/** Less is music. Of 752 beginnings by voices that nothing was learned from none is lost by it, and three are noticed more than 80 ms later. */
const ofBeginning = -3
const beginningFrames = 30
const ofSound = -2
/** On a line that has brought music: behind a pause, and over music. */
const ofKnownBeginning = -1
const ofKnownSound = 1
/** More is a voice, however little it moves. */
const ofVoice = 2

/** Less is no voice; so many frames are looked at. */
const taken = -2
const takenAnswer = -4
const takenAfter = 25
/** Frames that are rather a voice: whoever has spoken for so long was no music. */
const spoken = 8

/** What is known of the line, in sums of odds: a second of music is enough, and two of a voice undo it. */
const known = 20
const mostKnown = 40
const share = 0.1
const mostOfFrame = 0.4
/** A frame of silence: twenty seconds of it. */
const forgotten = 0.02
/** What the first frames are like says too little of the line. */
const tellingFrames = 15

export function createMusic(): Music {
  const voice = createVoiceOdds()
  const newest = new Float64Array(newestFrames)
  let at = 0
  let knowledge = 0
  /** Since somebody is taken for speaking. */
  let frames = 0
  let sum = 0
  let voiced = 0

  const mean = (): number => {
    const count = Math.min(newestFrames, voice.heard())
    let total = 0
    for (let back = 1; back <= count; back++) total += newest[(at - back + newestFrames) % newestFrames]!
    return count === 0 ? 0 : total / count
  }
  const learn = (odds: number): void => {
    const step = Math.max(-mostOfFrame, Math.min(mostOfFrame, -share * odds))
    if (voice.heard() > tellingFrames) knowledge = Math.max(0, Math.min(mostKnown, knowledge + step))
  }
  const least = (): number => {
    const isBeginning = voice.heard() < beginningFrames
    if (knowledge >= known) return isBeginning ? ofKnownBeginning : ofKnownSound
    return isBeginning ? ofBeginning : ofSound
  }
  return {
    hear(samples, level, isHeard) {
      voice.hear(samples, level, isHeard)
      if (!isHeard) {
        knowledge = Math.max(0, knowledge - forgotten)
        return
      }
      const odds = voice.odds()
      newest[at++ % newestFrames] = odds
      learn(odds)
      frames++
      sum += odds
      if (odds > 0) voiced++
    },
    isLikely: () => mean() < least(),
    isVoice: () => knowledge >= known && mean() > ofVoice,
    isKnown: () => knowledge >= known && mean() < 0,
    begin() {
      frames = 0
      sum = 0
      voiced = 0
    },
    isTaken: (isAnswer) => frames >= takenAfter && voiced < spoken && sum / frames < (isAnswer ? takenAnswer : taken),
  }
}
