/** Owns how numbers, times and words of the API read to people. */

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const long = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** @param {string | number | undefined | null} time */
export function timeOf(time) {
  if (time === undefined || time === null) return '–'
  const date = new Date(time)
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`
}

/** @param {string | number | undefined | null} time */
export const longTimeOf = (time) => (time === undefined || time === null ? '–' : long.format(new Date(time)))

/**
 * `3:07`, `1:02:03`.
 * @param {number | undefined | null} seconds
 */
export function durationOf(seconds) {
  if (seconds === undefined || seconds === null) return '–'
  const whole = Math.max(0, Math.floor(seconds))
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const padded = String(rest).padStart(2, '0')
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${padded}` : `${minutes}:${padded}`
}

/** @param {number | undefined | null} ms */
export function msOf(ms) {
  if (ms === undefined || ms === null) return '–'
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
}

/**
 * `no_answer` reads `no answer`.
 * @param {string | undefined | null} word
 */
export const wordsOf = (word) => (word ?? '–').replaceAll('_', ' ')

/**
 * Who said a turn: of the agent's side an engine, or a person in the agent's place.
 * @param {{ speaker: 'user' | 'agent', source?: string | null }} turn
 */
export function whoOf({ speaker, source }) {
  if (source === 'supervisor') return 'Supervisor'
  return speaker === 'agent' ? 'Agent' : 'Caller'
}

/** @param {import('./answers').Call} call */
export function otherSideOf({ direction, transport, fromNumber, toNumber, customer }) {
  const name = [customer?.firstName, customer?.lastName].filter(Boolean).join(' ')
  const number = transport === 'webrtc' ? 'Browser' : ((direction === 'inbound' ? fromNumber : toNumber) ?? 'Withheld')
  return { name: name === '' ? number : name, number: name === '' ? '' : number }
}

/** @param {import('./answers').Call} call */
export const statusOf = ({ outcome, progress, status }) => outcome ?? progress ?? status

/** @type {Record<string, 'good' | 'bad' | 'warn' | 'live' | 'plain'>} */
const tones = {
  in_progress: 'live',
  ringing: 'live',
  queued: 'warn',
  scheduled: 'plain',
  completed: 'good',
  failed: 'bad',
  busy: 'warn',
  no_answer: 'warn',
  voicemail: 'warn',
  canceled: 'plain',
}

/** @param {string} status */
export const toneOf = (status) => tones[status] ?? 'plain'

/** Of a mean opinion score. @param {number} mos */
export function qualityToneOf(mos) {
  if (mos >= 3.8) return 'good'
  return mos >= 3.1 ? 'warn' : 'bad'
}
