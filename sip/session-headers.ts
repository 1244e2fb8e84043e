/**
 * Owns what our INVITEs and our answers to theirs say of what we can do and of session timers (RFC 3261 §20.5, §20.37; RFC 4028). A
 * drachtio-server adds none of it by itself; the embedded server would, and writes its own Session-Expires in place of ours.
 */
import { capabilities } from './answer-with.ts'
import {
  answerSession,
  askForLonger,
  askForSession,
  isTooShort,
  minSessionSeconds,
  sessionValue,
} from './server/dialog/session-timer.ts'
import type { HeaderField } from './server/message/message.ts'
import { sessionExpiresOf } from './server/message/numbered-fields.ts'
import type { MessageIn } from './stack-types.ts'

type Headers = Record<string, string>

/** RFC 4028 §4. */
const sessionSeconds = 1_800

const abilities: Headers = { Allow: capabilities.Allow, Supported: capabilities.Supported }

/** Of an INVITE outside dialogs. */
export const invitingHeaders = (): Headers => ({ ...abilities, ...toHeaders(askForSession(sessionSeconds, null)) })

/** Of the same with a proof of who calls: the peer that asked for it would ask for it of each refreshing too, and is to refresh by itself. */
export const refreshedByPeer = (asked: Headers): Headers => {
  const session = sessionExpiresOf({ headers: [{ name: 'Session-Expires', value: asked['Session-Expires'] ?? '' }] })
  return session ? { 'Session-Expires': sessionValue({ ...session, refresher: 'uas' }) } : {}
}

/** Of a 2xx to their INVITE or UPDATE, which agrees on the session timer that they ask for. */
export const acceptingHeaders = (request: MessageIn): Headers => ({
  ...abilities,
  ...toHeaders(answerSession(timerFieldsOf(request)).headers),
})

/** Of a 422: their interval is below the least that is allowed. Null: it is not. */
export const tooShortSession = (request: MessageIn): Headers | null =>
  isTooShort(timerFieldsOf(request)) ? { 'Min-SE': String(minSessionSeconds) } : null

/** RFC 4028 §7.3: of our INVITE once more, with the interval that a 422 wants. Null: it wants none that could be had. */
export function longerSession(sent: MessageIn, refusal: MessageIn): Headers | null {
  const asked = sessionExpiresOf(timerFieldsOf(sent)) ?? { seconds: sessionSeconds, refresher: null }
  const fields = askForLonger(asked, timerFieldsOf(refusal))
  return fields && toHeaders(fields)
}

/** The library knows no short form of the first. RFC 4028 §4. */
const timerFields = { 'Session-Expires': 'x', 'Min-SE': null, Supported: null, Require: null }

const timerFieldsOf = (message: MessageIn): { readonly headers: HeaderField[] } => ({
  headers: Object.entries(timerFields).flatMap(([name, short]) => {
    const value = message.get(name) ?? (short === null ? undefined : message.get(short))
    return value === undefined ? [] : [{ name, value }]
  }),
})

const toHeaders = (fields: readonly HeaderField[]): Headers =>
  Object.fromEntries(fields.map(({ name, value }) => [name, value]))
