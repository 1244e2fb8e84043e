/** Owns how a value that came from an endpoint is looked at: nothing about it is taken for granted. Pure, and it never throws. */

export type Fields = Readonly<Record<string, unknown>>

/** Null for anything but an object. */
export const fieldsOf = (value: unknown): Fields | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null

export function parsedObject(text: string): Fields | null {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return null
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
