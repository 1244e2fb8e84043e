/** Owns making the answer to a request: what it copies from it. RFC 3261 §8.2.6. */
import { tagIn } from './address.ts'
import type { HeaderField, SipRequest, SipResponse } from './message.ts'

export type ResponseParts = {
  readonly status: number
  readonly reason: string
  /** Put behind the To of everything but a 100, when the request had none. */
  readonly toTag: string | null
  readonly headers?: readonly HeaderField[]
  readonly body?: Uint8Array
}

const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq']

/** Also for a request that was read in part: what it has not got, the answer has not got. Record-Route is the dialog's (§12.1.1). */
export function responseTo(
  request: SipRequest,
  { status, reason, toTag, headers = [], body }: ResponseParts,
): SipResponse {
  const own = request.headers.flatMap((field) => {
    if (field.name === 'To') return [{ name: 'To', value: withTag(field.value, status === 100 ? null : toTag) }]
    // §8.2.6.1: a 100 says when the request was sent.
    return copied.includes(field.name) || (status === 100 && field.name === 'Timestamp') ? [field] : []
  })
  return { kind: 'response', status, reason, headers: [...own, ...headers], body: body ?? new Uint8Array(0) }
}

/** A To or From with a tag, unless it has one. An address without `<>` takes parameters as its header's as well. */
export const withTag = (value: string, tag: string | null): string =>
  tag === null || tagIn(value) !== null ? value : `${value};tag=${tag}`
