/** Owns one reply of a Gemini Live model at a time: its item, whose text and sound come in any order, and its end, after which text may still come. */
import { frameMs } from '../../../model/frame.ts'
import type { WireEvent } from '../hosted/wire.ts'

export type SpokenReply = {
  /** `says`: it is one that was to be said word for word. */
  begin(says: boolean): void
  sound(payload: Uint8Array, says: boolean): void
  write(text: string, finished: boolean): void
  /** It is done in so many frames, unless something comes of it. */
  endIn(frames: number): void
  end(): void
  /** What still comes is not let through for so many frames. */
  mute(frames: number): void
  unmute(): void
  frame(): void
  isOpen(): boolean
}

/** Words may come before the sound that they belong to, by so much. */
const earlyFrames = 1_000 / frameMs
const maxText = 100_000

type Deps = {
  /** Unique over the sessions of a call. */
  readonly session: string
  emit(event: WireEvent): void
  /** Tells what must be told before a reply is done. */
  beforeDone(): void
}

type Item = { readonly id: string; text: string }

const none = { text: '', left: 0 }

export function createSpokenReply({ session, emit, beforeDone }: Deps): SpokenReply {
  let item: Item | null = null
  let items = 0
  let isOpen = false
  let early = none
  /** Frames; 0: not counted. */
  let doneLeft = 0
  let mutedLeft = 0

  const begin = (says: boolean): void => {
    doneLeft = 0
    if (isOpen) return
    isOpen = true
    emit({ type: 'reply_started', says })
  }
  const end = (): void => {
    doneLeft = 0
    // Words without a sound were not said.
    early = none
    if (!isOpen) return
    beforeDone()
    if (item !== null) emit({ type: 'item_done', itemId: item.id })
    item = null
    isOpen = false
    emit({ type: 'reply_done' })
  }
  const append = (to: Item, text: string): void => {
    to.text = (to.text + text).slice(0, maxText)
    emit({ type: 'agent_text', itemId: to.id, text: to.text.trim() })
  }
  return {
    begin,
    sound(payload, says) {
      if (mutedLeft > 0) return
      begin(says)
      item ??= { id: `${session}-${++items}`, text: '' }
      emit({ type: 'audio', itemId: item.id, payload })
      if (early.text !== '') append(item, early.text)
      early = none
    },
    write(text, finished) {
      if (mutedLeft > 0) return
      if (text !== '' && item !== null) append(item, text)
      else if (text !== '') early = { text: (early.text + text).slice(0, maxText), left: earlyFrames }
      if (finished && doneLeft > 0) end()
    },
    endIn: (frames) => void (isOpen && (doneLeft = frames)),
    end,
    mute(frames) {
      end()
      mutedLeft = frames
    },
    unmute: () => void (mutedLeft = 0),
    frame() {
      if (mutedLeft > 0) mutedLeft--
      if (early.text !== '') early = early.left > 1 ? { ...early, left: early.left - 1 } : none
      if (doneLeft > 0 && --doneLeft === 0) end()
    },
    isOpen: () => isOpen,
  }
}
