/** Owns how the form of a page is read: small, in UTF-8, each field once, and nothing in it that no person types. */
import { Problem } from '../../model/problem.ts'

export type PageForm = {
  /** Null: it is not there. Throws Problem VALIDATION_FAILED where it stands twice. */
  one(name: string): string | null
  /** In their order; for boxes of one name. */
  all(name: string): readonly string[]
}

const maxFormBytes = 16 * 1024
const maxFields = 200

/** Throws Problem UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE or VALIDATION_FAILED. */
export async function readPageForm(request: Request): Promise<PageForm> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';', 1)
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded')
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'A form is sent as application/x-www-form-urlencoded.')
  // What says to be too long is not even waited for.
  if (Number(request.headers.get('content-length') ?? 0) > maxFormBytes) throw tooLarge()
  const body = await request.arrayBuffer()
  if (body.byteLength > maxFormBytes) throw tooLarge()
  const fields = fieldsIn(new Uint8Array(body))
  const all = (name: string): string[] => fields.filter((field) => field.name === name).map(({ value }) => value)
  return {
    all,
    one(name) {
      const [value = null, ...others] = all(name)
      if (others.length > 0) throw unreadable(`The field ${name} stands in it more than once.`)
      return value
    },
  }
}

type FormField = { readonly name: string; readonly value: string }

function fieldsIn(body: Uint8Array): FormField[] {
  const pairs = decoded(() => new TextDecoder('utf-8', { fatal: true }).decode(body)).split('&', maxFields + 1)
  if (pairs.length > maxFields) throw unreadable('It has too many fields.')
  return pairs
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      return { name: partOf(name), value: partOf(value) }
    })
}

/** Not as URLSearchParams does, which puts the same character in the place of all that is no UTF-8. */
function partOf(encoded: string): string {
  const text = decoded(() => decodeURIComponent(encoded.replaceAll('+', ' ')))
  if (text.includes('\0')) throw unreadable('It has the character U+0000 in it.')
  return text
}

function decoded(decode: () => string): string {
  try {
    return decode()
  } catch {
    throw unreadable('It is not UTF-8.')
  }
}

const tooLarge = (): Problem => new Problem('PAYLOAD_TOO_LARGE', 'A form may have 16 KiB at most.')
const unreadable = (why: string): Problem => new Problem('VALIDATION_FAILED', `The form cannot be read. ${why}`)
