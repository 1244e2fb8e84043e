/** Owns what the model says: text and sound of each item as they come, and what of them the caller did not hear. */
import { randomBytes } from 'node:crypto'
import { frameMs, type AudioFormat } from '../../../model/frame.ts'
import type { EngineSession } from '../../../model/voice-engine.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { objectOf, textOf, type Message } from './fields.ts'

export type AgentItems = {
  replyBegun(responseId: string): void
  added(message: Message): void
  /** False: there is nothing in it to be heard. */
  sound(message: Message): boolean
  partText(message: Message): void
  finalText(message: Message): void
  done(message: Message): void
  /** All of the reply has come. */
  replyDone(): void
  /** What comes of this reply from now on is not to be heard. */
  cutReply(responseId: string): void
  /** What else comes of the reply `replying` was not heard either. */
  interrupt(heard: Parameters<EngineSession['interrupt']>[0], replying: string | null): void
}

type Item = {
  /** Ours: never used again in a call, whatever the provider does with its own. */
  readonly itemId: string
  readonly wireId: string
  readonly responseId: string
  /** Its reply was over when another one of the same name began. */
  isPast: boolean
  text: string
  bytes: number
  /** Half a sample. */
  odd: Uint8Array
  /** Nothing more of it is told. */
  over: boolean
  /** The provider has no more of it than came. */
  isComplete: boolean
  /** What the model remembers of its sound, where that is less than came. */
  keptMs: number | null
  /** The model has forgotten it. */
  gone: boolean
}

type Deps = {
  readonly format: AudioFormat
  send(message: object): void
  emit(event: WireEvent): void
}

/** Of the past, which may be cut off long after they have come. */
const maxItems = 64
const maxText = 20_000
const nothing = new Uint8Array(0)

export function createAgentItems(deps: Deps): AgentItems {
  const { format, emit } = deps
  const sampleBytes = format.encoding === 'pcm16' ? 2 : 1
  const list = createItemList(deps)
  const replyOf = ({ response_id }: Message): string => textOf(response_id) || list.current
  const from = (message: Message): Item | null => list.open(textOf(message.item_id), replyOf(message))
  return {
    replyBegun: list.replyBegun,
    added(message) {
      const { id, type } = objectOf(message.item)
      if (type === 'message') list.open(textOf(id), replyOf(message))
    },
    sound(message) {
      const item = from(message)
      if (item === null) return false
      const bytes = joined(item.odd, Buffer.from(textOf(message.delta), 'base64'))
      const whole = bytes.length - (bytes.length % sampleBytes)
      item.odd = bytes.subarray(whole)
      item.bytes += whole
      if (whole > 0) emit({ type: 'audio', itemId: item.itemId, payload: bytes.subarray(0, whole) })
      return whole > 0
    },
    partText(message) {
      const item = from(message)
      if (item) tell(deps, item, item.text + textOf(message.delta))
    },
    finalText(message) {
      const item = from(message)
      if (item) tell(deps, item, textOf(message.transcript))
    },
    done(message) {
      const item = list.known(textOf(objectOf(message.item).id), replyOf(message))
      if (item) complete(deps, item)
    },
    replyDone() {
      list.cutResponse = null
      for (const item of list.items) complete(deps, item)
    },
    cutReply(responseId) {
      list.cutResponse = responseId
    },
    interrupt(heard, replying) {
      list.cutResponse = replying
      for (const { item, playedMs } of cutsOf(list.items, heard)) cut(deps, item, playedMs)
    },
  }
}

/** Items by the names of the provider, which may use one again in a later reply, and the name of the reply as well. */
function createItemList(deps: Deps) {
  const items: Item[] = []
  const newItem = itemsNamed(randomBytes(6).toString('hex'))
  const list = {
    items,
    /** The reply of what does not name one. */
    current: '',
    cutResponse: null as string | null,
    replyBegun(responseId: string): void {
      list.current = responseId
      for (const item of items) item.isPast ||= item.responseId === responseId
    },
    known: (wireId: string, responseId: string): Item | undefined =>
      items.findLast((item) => item.wireId === wireId && item.responseId === responseId && !item.isPast),
    /** Null: nothing more of it is told. */
    open(wireId: string, responseId: string): Item | null {
      if (wireId === '') return null
      const known = list.known(wireId, responseId)
      if (known) return known.over ? null : known
      const item = newItem(wireId, responseId)
      item.over = responseId === list.cutResponse
      items.push(item)
      if (items.length > maxItems) finish(deps, items.shift()!)
      if (!item.over) return item
      forget(deps, item)
      return null
    },
  }
  return list
}

function itemsNamed(session: string): (wireId: string, responseId: string) => Item {
  let count = 0
  const unheard = { text: '', bytes: 0, odd: nothing, keptMs: null }
  const flags = { isPast: false, over: false, isComplete: false, gone: false }
  return (wireId, responseId) => ({ itemId: `${session}.${++count}`, wireId, responseId, ...unheard, ...flags })
}

function tell({ emit }: Deps, item: Item, text: string): void {
  if (text === item.text || text === '') return
  item.text = text.slice(0, maxText)
  emit({ type: 'agent_text', itemId: item.itemId, text: item.text })
}

type Heard = Parameters<AgentItems['interrupt']>[0]

/** The item that was cut off and all after it; of nothing heard, all of the last reply. */
function cutsOf(items: readonly Item[], heard: Heard): { readonly item: Item; readonly playedMs: number }[] {
  const at = items.findIndex(({ itemId }) => itemId === heard?.itemId)
  const last = items.at(-1)?.responseId
  const unheard = items.filter((item, index) => (at === -1 ? item.responseId === last : index > at))
  const late = unheard.map((item) => ({ item, playedMs: 0 }))
  const item = items[at]
  return item && heard ? [{ item, playedMs: heard.playedMs }, ...late] : late
}

function finish({ emit }: Deps, item: Item): void {
  if (item.over) return
  item.over = true
  if (item.bytes > 0 || item.text !== '') emit({ type: 'item_done', itemId: item.itemId })
}

/** One that was cut off before its end has more to it than came. */
function complete(deps: Deps, item: Item): void {
  item.isComplete ||= !item.over
  finish(deps, item)
}

function forget({ send }: Deps, item: Item): void {
  item.gone = true
  send({ type: 'conversation.item.delete', item_id: item.wireId })
}

/**
 * The model remembers what was heard. The provider refuses to keep more than it has of an item, or nothing; and it forgets the text of one that is
 * truncated, which one that was heard to its end must keep.
 */
function cut(deps: Deps, item: Item, playedMs: number): void {
  finish(deps, item)
  if (item.gone) return
  const { encoding, rateHz } = deps.format
  const came = (item.bytes * 1000) / (rateHz * (encoding === 'pcm16' ? 2 : 1))
  const known = item.keptMs ?? came
  const isAll = item.isComplete || item.keptMs !== null
  const audio_end_ms = Math.floor(Math.min(playedMs, known))
  if (audio_end_ms <= 0) return forget(deps, item)
  if (isAll && playedMs > known - frameMs) return
  item.keptMs = audio_end_ms
  deps.send({ type: 'conversation.item.truncate', item_id: item.wireId, content_index: 0, audio_end_ms })
}

const joined = (first: Uint8Array, second: Uint8Array): Uint8Array =>
  first.length === 0 ? second : Buffer.concat([first, second])
