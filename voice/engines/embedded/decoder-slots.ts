/**
 * Owns which hearing of a recognition thread is busy with which utterance. One is there from the start; another is made when all are busy, because each
 * takes 8 MB and 50 ms, and one alone hears the callers of a small service. Those that were made stay.
 */

export type DecoderSlots<Hearing> = {
  /** Throws when all are busy and no more may be made. */
  take(utterance: number): Hearing
  /** Null: it was given back before. */
  of(utterance: number): Hearing | null
  giveBack(utterance: number): void
}

type Slot<Hearing> = { readonly hearing: Hearing; utterance: number | null }

export function createDecoderSlots<Hearing>(most: number, create: () => Hearing): DecoderSlots<Hearing> {
  const slots: Slot<Hearing>[] = [{ hearing: create(), utterance: null }]
  const busyWith = (utterance: number | null) => slots.find((slot) => slot.utterance === utterance)
  const add = (): Slot<Hearing> => {
    if (slots.length >= most) throw new Error('more utterances than decoders')
    const slot = { hearing: create(), utterance: null }
    slots.push(slot)
    return slot
  }
  return {
    take(utterance) {
      const slot = busyWith(null) ?? add()
      slot.utterance = utterance
      return slot.hearing
    },
    of: (utterance) => busyWith(utterance)?.hearing ?? null,
    giveBack(utterance) {
      const slot = busyWith(utterance)
      if (slot) slot.utterance = null
    },
  }
}
