// @ts-check
/** Owns what can go wrong in a call, by codes that stay, each with a sentence for people. docs/sdk.md "Errors". */

/** @import { CallTrouble, ErrorCode } from './types/parley-client.d.ts' */

/** @type {Readonly<Record<ErrorCode, string>>} */
const sentences = {
  insecure_context: 'The browser gives a microphone to secure pages only (https or localhost).',
  permission_denied: 'The page may not use the microphone. Allow it in the address bar and try again.',
  no_microphone: 'No microphone was found. Connect one and try again.',
  microphone_failed: 'The microphone cannot be used. Another program may be holding it.',
  microphone_lost: 'The microphone is gone. Connect it again, or choose another one.',
  speaker_failed: 'The sound cannot be played there.',
  playback_blocked: 'The browser holds the sound back until you touch the page.',
  session_failed: 'The call could not be begun.',
  token_expired: 'The permission for this call has expired. Begin it anew.',
  join_refused: 'The service did not let this call in: its token is used, expired or unknown, or there is no room.',
  signaling_lost: 'The connection to the service was lost.',
  media_failed: 'No sound could be exchanged. A firewall may block UDP.',
  media_closed: 'The sound was interrupted for too long.',
  client_lost: 'The connection to the service was lost for too long.',
  call_failed: 'The agent could not take the call.',
  service_stopping: 'The service is being restarted. Try again in a moment.',
  message_refused: 'The service did not understand what the page asked for.',
  service_failed: 'Something failed at the service.',
  not_supported: 'The browser cannot do that.',
  client_failed: 'Something failed in the page.',
}

export class CallError extends Error {
  /** @param {ErrorCode} code @param {string} message @param {unknown} [cause] */
  constructor(code, message, cause) {
    super(message, { cause })
    this.name = 'CallError'
    this.code = code
  }
}

/** @param {ErrorCode} code @param {unknown} [cause] */
export const callError = (code, cause) => new CallError(code, sentences[code], cause)

/**
 * @param {ErrorCode} code
 * @param {{ isFatal?: boolean, cause?: string | null, sentence?: string }} [more] @returns {CallTrouble}
 */
export const troubleOf = (code, { isFatal = false, cause = null, sentence = sentences[code] } = {}) => ({
  code,
  sentence,
  isFatal,
  cause,
})

/** Of what was thrown before the call began. @param {unknown} error @returns {CallTrouble} */
export function troubleOfThrown(error) {
  const cause = error instanceof Error ? error : new Error(String(error))
  const code = error instanceof CallError ? error.code : 'client_failed'
  return { code, sentence: cause.message || sentences[code], isFatal: true, cause: cause.name }
}

/** Why a call ended, where that is trouble. @type {ReadonlyMap<string, ErrorCode>} */
const endings = new Map([
  ['media_failed', 'media_failed'],
  ['signaling_lost', 'signaling_lost'],
  ['media_closed', 'media_closed'],
  ['client_lost', 'client_lost'],
  ['failed', 'call_failed'],
  ['service_stopping', 'service_stopping'],
])

/** Null: it ended as calls do. @param {string} reason */
export function troubleOfEnding(reason) {
  const code = endings.get(reason)
  return code ? troubleOf(code, { isFatal: true, cause: reason }) : null
}

/** Of an error that the service told. @param {{ type: string, details?: string }} error */
export const troubleOfMessage = ({ type, details }) =>
  troubleOf(type === 'INTERNAL' || type === 'SERVICE_UNAVAILABLE' ? 'service_failed' : 'message_refused', {
    cause: type,
    ...(details && { sentence: details }),
  })
