/** The measure by which `npm run bench opus` judges speech: it must rank as an ear would, else its table says nothing. */
import { test } from 'tap'
import { createRandom } from '../fake/random.ts'
import { qualityOf } from '../load/speech-quality.ts'

/** Voiced sound of a moving pitch, in syllables with pauses between them. */
function speechOf(rateHz: number): Int16Array {
  let phase = 0
  return Int16Array.from({ length: rateHz * 3 }, (_, at) => {
    const seconds = at / rateHz
    phase += (2 * Math.PI * (120 + 40 * Math.sin(2 * Math.PI * seconds))) / rateHz
    const syllable = Math.max(0, Math.sin(2 * Math.PI * 3 * seconds))
    const overtones = [1, 2, 3, 5, 8, 13, 20].reduce(
      (sum, number) => sum + Math.sin(number * phase) / Math.sqrt(number),
      0,
    )
    return Math.round(2500 * syllable * overtones)
  })
}

function noisy(sound: Int16Array, level: number): Int16Array {
  const random = createRandom(3)
  return sound.map((sample) => sample + random.below(2 * level + 1) - level)
}

test('speech that is unchanged, later or louder is as good as it was, and more noise is always worse', async (t) => {
  for (const rateHz of [8000, 16_000]) {
    const said = speechOf(rateHz)
    const later = new Int16Array(said.length)
    later.set(said.subarray(0, said.length - 100), 100)
    t.equal(qualityOf(said, said, rateHz).score, 4.5)
    t.ok(qualityOf(said, later, rateHz).score > 4.49, 'it is aligned')
    t.ok(
      qualityOf(
        said,
        said.map((sample) => sample / 2),
        rateHz,
      ).score > 4.45,
      'loudness is not quality',
    )
    const scores = [20, 80, 320, 1280].map((level) => qualityOf(said, noisy(said, level), rateHz))
    t.ok(
      scores.every(({ score }, at) => score < (scores[at - 1]?.score ?? 4.5)),
      scores.map(({ score }) => score.toFixed(2)).join(),
    )
    t.ok(scores.every(({ segmentalSnr }, at) => segmentalSnr < (scores[at - 1]?.segmentalSnr ?? 36)))
  }
})

test('sound that lost its upper half, or every tenth frame, is worse than all of it', async (t) => {
  const said = speechOf(16_000)
  const dull = said.map((_, at) =>
    Math.round([0, 1, 2, 3, 4, 5, 6, 7].reduce((sum, back) => sum + (said[at - back] ?? 0), 0) / 8),
  )
  const holed = said.map((sample, at) => (Math.floor(at / 320) % 10 === 3 ? 0 : sample))
  t.ok(qualityOf(said, dull, 16_000).score < 4.2)
  t.ok(qualityOf(said, holed, 16_000).score < 4.2)
})
