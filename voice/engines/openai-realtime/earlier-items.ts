/** Owns what a conversation has from before its session: in front of all that this session has heard. */
import { storableText } from '../../../model/json.ts'
import type { Said } from '../../../model/voice-engine.ts'
import { itemOf } from './setup.ts'

export type EarlierItems = {
  /** While nothing else is there. */
  add(said: Said): void
  /** Behind those, whatever was said since. */
  insert(said: Said): void
}

/** The provider's word for the place before the first item. */
const root = 'root'
/** Letters of what becomes known in the middle of a session. */
const maxInserted = 4_000

export function createEarlierItems(send: (message: object) => void): EarlierItems {
  let last = root
  let count = 0
  const nextId = (): string => (last = `earlier_${++count}`)
  return {
    add: ({ role, text }) => send(itemOf(role, text, { id: nextId() })),
    insert({ role, text }) {
      const behind = last
      send(itemOf(role, storableText(text, maxInserted), { id: nextId(), behind }))
    },
  }
}
