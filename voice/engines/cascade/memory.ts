/**
 * Owns what a session that goes on is told besides what was said: calls of tools and their results, news, and where in the talk they stood. Pure and
 * bounded: it is stored with every turn. Memory of another form is ignored.
 */
import { z } from 'zod'
import { JsonObject, storableText, type Json } from '../../../model/json.ts'
import type { Said } from '../../../model/voice-engine.ts'
import { newestThatFit } from '../hosted/newest-that-fit.ts'
import type { Asked, Entry } from './entry.ts'

/** What was said last before it, oldest first. */
const Before = z.array(z.object({ role: z.enum(['agent', 'user']), text: z.string() })).max(8)
const Call = z.object({
  id: z.string(),
  wireId: z.string(),
  name: z.string(),
  arguments: JsonObject.nullable(),
  output: z.string().nullable(),
  wantsReply: z.boolean(),
})
const Remembered = z.union([
  z.object({ before: Before, calls: z.array(Call).min(1) }),
  z.object({ before: Before, news: z.string() }),
])
type Remembered = z.infer<typeof Remembered>
const Memory = z.object({ besides: z.array(Remembered) })

/** Letters: in all, of one result, of one call's arguments, and of one thing said. */
const limits = { all: 16_000, output: 4_000, arguments: 1_000, said: 60 }
const maxBefore = 3
const emptyBytes = JSON.stringify({ besides: [] }).length

/** The newest that fit. Null when there is nothing to remember. */
export function memoryOf(entries: readonly Entry[]): Json {
  const besides: Remembered[] = []
  let letters = 0
  for (const [index, entry] of [...entries.entries()].toReversed()) {
    const remembered = rememberedOf(entry, entries.slice(0, index))
    if (remembered === null) continue
    letters += JSON.stringify(remembered).length
    if (letters > limits.all) break
    besides.unshift(remembered)
  }
  return besides.length === 0 ? null : { besides }
}

/** Letters are no bytes: of other alphabets fewer fit. */
export function shortenedMemory(memory: Json, maxBytes: number): Json {
  const { besides } = Memory.parse(memory)
  const kept = newestThatFit(besides, maxBytes - emptyBytes)
  return kept.length === 0 ? null : { besides: kept }
}

function rememberedOf(entry: Entry, earlier: readonly Entry[]): Remembered | null {
  if (entry.kind === 'calls') return { before: beforeOf(earlier), calls: entry.calls.map(cutCall) }
  return entry.kind === 'news' ? { before: beforeOf(earlier), news: storableText(entry.text, limits.output) } : null
}

function cutCall(call: Asked): z.infer<typeof Call> {
  const { id, wireId, name, output, wantsReply } = call
  const given = JSON.stringify(call.arguments).length > limits.arguments ? {} : call.arguments
  return { id, wireId, name, arguments: given, output: output && storableText(output, limits.output), wantsReply }
}

function beforeOf(earlier: readonly Entry[]): Said[] {
  const said: Said[] = []
  for (const entry of earlier.toReversed()) {
    if (said.length === maxBefore) break
    if ((entry.kind !== 'agent' && entry.kind !== 'caller') || entry.text.trim() === '') continue
    const role = entry.kind === 'agent' ? 'agent' : 'user'
    said.unshift({ role, text: storableText(entry.text.trim(), limits.said) })
  }
  return said
}

export const entryOf = ({ role, text }: Said): Entry => ({ kind: role === 'user' ? 'caller' : 'agent', text })

/** What was said, and what is remembered in its place. */
export function rememberedEntries(memory: Json, said: readonly Said[]): Entry[] {
  const entries = said.map(entryOf)
  const besides = Memory.safeParse(memory).data?.besides ?? []
  let limit = said.length
  for (const one of besides.toReversed()) {
    limit = placeOf(one.before, said.slice(0, limit))
    entries.splice(limit, 0, 'calls' in one ? { kind: 'calls', calls: one.calls } : { kind: 'news', text: one.news })
  }
  return entries
}

/** Behind the last thing that was said before it and is still known. The same may have been said several times: what came before it tells. */
function placeOf(before: readonly Said[], said: readonly Said[]): number {
  const isBeginning = before.length < maxBefore
  for (let known = before.length; known > 0; known--) {
    const chain = before.slice(0, known)
    const places = said.flatMap((_, at) => (isSame(said[at], chain.at(-1)) ? [at + 1] : []))
    const isSure = (place: number): boolean =>
      chain.every((one, index) => isSame(said[place - known + index], one)) && (!isBeginning || place === known)
    const place = places.findLast(isSure) ?? places.at(-1)
    if (place !== undefined) return place
  }
  return 0
}

/** What the agent said may have been heard in part. */
function isSame(one: Said | undefined, other: Said | undefined): boolean {
  if (one === undefined || one.role !== other?.role) return false
  const [text, known] = [lettersOf(storableText(one.text.trim(), limits.said)), lettersOf(other.text)]
  if (one.role === 'user') return text === known
  return text !== '' && known !== '' && (text.startsWith(known) || known.startsWith(text))
}

const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
