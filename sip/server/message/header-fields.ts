/** Owns looking up and replacing the header fields of a message. Names are given in their long form (message.ts). */
import { splitAt } from './header-text.ts'
import type { HeaderField } from './message.ts'

type Fields = { readonly headers: readonly HeaderField[] }

/** The value of the first field of this name. */
export const headerOf = (message: Fields, name: string): string | null =>
  message.headers.find((field) => field.name === name)?.value ?? null

/** One value per field, as it stood. */
export const headersOf = (message: Fields, name: string): string[] =>
  message.headers.filter((field) => field.name === name).map((field) => field.value)

/**
 * The values of a header that is a list (Via, Route, Contact, Supported …), over all its fields in their order. A field that cannot be cut
 * stays whole.
 */
export const valuesOf = (message: Fields, name: string): string[] =>
  headersOf(message, name).flatMap((value) => splitAt(value, ',') ?? [value])

/** The same message with exactly these values of a header: at the place of its first field, else behind all others. None takes it away. */
export function withHeader<Message extends Fields>(message: Message, name: string, ...values: string[]): Message {
  const fresh = values.map((value) => ({ name, value }))
  const at = message.headers.findIndex((field) => field.name === name)
  if (at === -1) return { ...message, headers: [...message.headers, ...fresh] }
  const before = message.headers.slice(0, at)
  const after = message.headers.slice(at).filter((field) => field.name !== name)
  return { ...message, headers: [...before, ...fresh, ...after] }
}

/** The same message with fields put in front, as a proxy or client does with Via. */
export const withFirst = <Message extends Fields>(message: Message, ...fields: HeaderField[]): Message => ({
  ...message,
  headers: [...fields, ...message.headers],
})

/** Is one of the option tags of Supported, Require … there? They are compared without case. RFC 3261 §7.3.1. */
export const hasTag = (message: Fields, name: 'Supported' | 'Require' | 'Allow', tag: string): boolean =>
  valuesOf(message, name).some((value) => value.toLowerCase() === tag.toLowerCase())
