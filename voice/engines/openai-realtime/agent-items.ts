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

export function createAgentItems({ format, send, emit }: Deps): AgentItems {
  const sampleBytes = format.encoding === 'pcm16' ? 2 : 1
  const session = randomBytes(6).toString('hex')
  /** By the names of the provider, which may use one again in a later reply, and the name of the reply as well. */
  const items: Item[] = []
  let count = 0
  /** The reply of what does not name one. */
  let current = ''
  /** What comes of this reply is not to be heard. */
  let cutResponse: string | null = null

  const newItem = (wireId: string, responseId: string): Item => ({
    itemId: `${session}.${++count}`,
    wireId,
    responseId,
    isPast: false,
    text: '',
    bytes: 0,
    odd: nothing,
    over: responseId === cutResponse,
    isComplete: false,
    keptMs: null,
    gone: false,
  })
  const finish = (item: Item): void => {
    if (item.over) return
    item.over = true
    if (item.bytes > 0 || item.text !== '') emit({ type: 'item_done', itemId: item.itemId })
  }
  /** One that was cut off before its end has more to it than came. */
  const complete = (item: Item): void => {
    item.isComplete ||= !item.over
    finish(item)
  }
  const forget = (item: Item): void => {
    item.gone = true
    send({ type: 'conversation.item.delete', item_id: item.wireId })
  }
  const replyOf = ({ response_id }: Message): string => textOf(response_id) || current
  const known = (wireId: string, responseId: string): Item | undefined =>
    items.findLast((item) => item.wireId === wireId && item.responseId === responseId && !item.isPast)
  /** Null: nothing more of it is told. */
  const open = (wireId: string, responseId: string): Item | null => {
    if (wireId === '') return null
    const opened = known(wireId, responseId)
    if (opened) return opened.over ? null : opened
    const item = newItem(wireId, responseId)
    items.push(item)
    if (items.length > maxItems) finish(items.shift()!)
    if (!item.over) return item
    forget(item)
    return null
  }
  const from = (message: Message): Item | null => open(textOf(message.item_id), replyOf(message))
  const tell = (item: Item | null, text: string): void => {
    if (item === null || text === item.text || text === '') return
    item.text = text.slice(0, maxText)
    emit({ type: 'agent_text', itemId: item.itemId, text: item.text })
  }
  /**
   * The model remembers what was heard. The provider refuses to keep more than it has of an item, or nothing; and it forgets the text of one that is
   * truncated, which one that was heard to its end must keep.
   */
  const cut = (item: Item, playedMs: number): void => {
    finish(item)
    if (item.gone) return
    const came = (item.bytes * 1000) / (format.rateHz * sampleBytes)
    const length = item.keptMs ?? came
    const isAll = item.isComplete || item.keptMs !== null
    const audio_end_ms = Math.floor(Math.min(playedMs, length))
    if (audio_end_ms <= 0) return forget(item)
    if (isAll && playedMs > length - frameMs) return
    item.keptMs = audio_end_ms
    send({ type: 'conversation.item.truncate', item_id: item.wireId, content_index: 0, audio_end_ms })
  }
  return {
    replyBegun(responseId) {
      current = responseId
      for (const item of items) item.isPast ||= item.responseId === responseId
    },
    added(message) {
      const { id, type } = objectOf(message.item)
      if (type === 'message') open(textOf(id), replyOf(message))
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
      tell(item, (item?.text ?? '') + textOf(message.delta))
    },
    finalText: (message) => tell(from(message), textOf(message.transcript)),
    done(message) {
      const item = known(textOf(objectOf(message.item).id), replyOf(message))
      if (item) complete(item)
    },
    replyDone() {
      cutResponse = null
      items.forEach(complete)
    },
    cutReply(responseId) {
      cutResponse = responseId
    },
    interrupt(heard, replying) {
      cutResponse = replying
      for (const { item, playedMs } of cutsOf(items, heard)) cut(item, playedMs)
    },
  }
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

const joined = (first: Uint8Array, second: Uint8Array): Uint8Array =>
  first.length === 0 ? second : Buffer.concat([first, second])
