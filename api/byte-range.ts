/** Owns the Range header. RFC 9110 section 14. */

/** Both ends inclusive. */
export type ByteRange = { readonly from: number; readonly to: number }

/** Null: answer with the whole. That goes for several ranges at once and other units too, as the RFC allows. */
export function byteRangeOf(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? '')
  if (!match) return null
  const [, first = '', last = ''] = match
  if (first === '') return suffixOf(last, size)
  if (last !== '' && Number(last) < Number(first)) return null
  if (Number(first) >= size) return 'unsatisfiable'
  return { from: Number(first), to: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

function suffixOf(length: string, size: number): ByteRange | 'unsatisfiable' | null {
  if (length === '') return null
  if (Number(length) === 0 || size === 0) return 'unsatisfiable'
  return { from: Math.max(0, size - Number(length)), to: size - 1 }
}
