/** Owns what answering machines say and people hardly do. English; other languages are told by their sound alone. */

/** `telling`: an instruction to record something. `hinting`: people say it of others as well. */
export type PhraseWeight = 'telling' | 'hinting'

const telling: readonly RegExp[] = [
  /\b(after|at|wait for) the (tone|beep|signal)\b/,
  /\b(you have|you've) reached the (voice ?mail|mail ?box|answering)\b/,
  /\b(the|this|your) (mail ?box|voice ?mail box) is full\b/,
  /\brecord (a|your) (message|name)\b/,
  /\bplease leave (me |us )?(a|your) (detailed |short |brief )?(message|name)\b/,
  /\bleave (me |us )?your name\b/,
]
const hinting: readonly RegExp[] = [
  /\bvoice ?mail\b/,
  /\bmail ?box\b/,
  /\banswering machine\b/,
  /\bleave (me |us )?(a|your) (detailed |short |brief )?message\b/,
  /\b(is not|isn't|am not|i'm not|are not) available\b/,
  /\b(can't|cannot|can not|unable to) (come to the phone|take your call|answer your call)\b/,
  /\bget back to you\b/,
]
/** Who asks, or offers, waits for an answer: a person. */
const asking = /\b(would you like|do you want|can i|could i|may i|shall i|should i|how can|how may|who is)\b|\?/

export function weightOf(text: string): PhraseWeight | null {
  const plain = text.toLowerCase().replaceAll('’', "'").replace(/\s+/g, ' ')
  if (asking.test(plain)) return null
  if (telling.some((phrase) => phrase.test(plain))) return 'telling'
  return hinting.some((phrase) => phrase.test(plain)) ? 'hinting' : null
}
