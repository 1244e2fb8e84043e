/** Owns what the model says: text and sound of each item as they come, and what of them the caller did not hear. */
import type { AudioFormat } from '../../../model/frame.ts'
import type { EngineSession } from '../../../model/voice-engine.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { objectOf, textOf, type Message } from './fields.ts'

export type AgentItems = {
  added(message: Message): void
  sound(message: Message): void
  partText(message: Message): void
  finalText(message: Message): void
  done(message: Message): void
  /** All of the reply has come. */
  replyDone(): void
  /** What else comes of the reply `replying` was not heard either. */
  interrupt(heard: Parameters<EngineSession['interrupt']>[0], replying: string | null): void
}

type Item = {
  readonly itemId: string
  readonly responseId: string
  text: string
  bytes: number
  /** Half a sample. */
  odd: Uint8Array
  /** Nothing more of it is told. */
  over: boolean
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
  const items: Item[] = []
  let cutResponse: string | null = null

  const openItem = (itemId: string, responseId: string): Item | null => {
    if (itemId === '') return null
    const known = items.find((item) => item.itemId === itemId)
    if (known) return known.over ? null : known
    const over = responseId === cutResponse
    const item = { itemId, responseId, text: '', bytes: 0, odd: nothing, over, gone: false }
    items.push(item)
    if (items.length > maxItems) finish(deps, items.shift()!)
    if (!over) return item
    forget(deps, item)
    return null
  }
  const from = (message: Message): Item | null => openItem(textOf(message.item_id), textOf(message.response_id))
  const tell = (item: Item, text: string): void => {
    if (text === item.text || text === '') return
    item.text = text.slice(0, maxText)
    emit({ type: 'agent_text', itemId: item.itemId, text: item.text })
  }
  return {
    added(message) {
      const { id, type } = objectOf(message.item)
      if (type === 'message') openItem(textOf(id), textOf(message.response_id))
    },
    sound(message) {
      const item = from(message)
      if (item === null) return
      const bytes = joined(item.odd, Buffer.from(textOf(message.delta), 'base64'))
      const whole = bytes.length - (bytes.length % sampleBytes)
      item.odd = bytes.subarray(whole)
      item.bytes += whole
      if (whole > 0) emit({ type: 'audio', itemId: item.itemId, payload: bytes.subarray(0, whole) })
    },
    partText(message) {
      const item = from(message)
      if (item) tell(item, item.text + textOf(message.delta))
    },
    finalText(message) {
      const item = from(message)
      if (item) tell(item, textOf(message.transcript))
    },
    done(message) {
      const item = items.find(({ itemId }) => itemId === textOf(objectOf(message.item).id))
      if (item) finish(deps, item)
    },
    replyDone() {
      cutResponse = null
      for (const item of items) finish(deps, item)
    },
    interrupt(heard, replying) {
      cutResponse = replying
      for (const { item, playedMs } of cutsOf(items, heard)) cut(deps, item, playedMs)
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

function finish({ emit }: Deps, item: Item): void {
  if (item.over) return
  item.over = true
  if (item.bytes > 0 || item.text !== '') emit({ type: 'item_done', itemId: item.itemId })
}

function forget({ send }: Deps, item: Item): void {
  item.gone = true
  send({ type: 'conversation.item.delete', item_id: item.itemId })
}

/** The model remembers what was heard: never more than came, nor nothing of an item, which the provider refuses. */
function cut(deps: Deps, item: Item, playedMs: number): void {
  const { encoding, rateHz } = deps.format
  finish(deps, item)
  if (item.gone) return
  const bytesPerMs = (rateHz * (encoding === 'pcm16' ? 2 : 1)) / 1000
  const audio_end_ms = Math.floor(Math.min(playedMs, item.bytes / bytesPerMs))
  if (audio_end_ms <= 0) return forget(deps, item)
  deps.send({ type: 'conversation.item.truncate', item_id: item.itemId, content_index: 0, audio_end_ms })
}

const joined = (first: Uint8Array, second: Uint8Array): Uint8Array =>
  first.length === 0 ? second : Buffer.concat([first, second])
