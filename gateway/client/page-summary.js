// @ts-check
/** Owns what the page shows of a call that is over: how long it was, what was extracted, what is next, and its recording. */
import { element } from './page-parts.js'

const askEvery = 500
const askFor = 40
/** What the service has settled by then is all there will be. */
const settled = ['completed', 'failed', 'none']

/**
 * @typedef {{ outcome?: string, postProcessingStatus: string, duration?: number, dimensions?: Record<string, unknown>, nextAction?: string, recordingUrl: string | null }} Told
 * @param {string} callId @returns {Promise<Told | null>}
 */
async function ask(callId) {
  const answer = await fetch(`/demo/calls/${encodeURIComponent(callId)}${location.search}`).catch(() => null)
  return answer?.ok ? await answer.json() : null
}

/** @param {string} callId @param {() => boolean} isWanted Another call may have begun meanwhile. */
export async function showSummary(callId, isWanted) {
  for (let asked = 0; asked < askFor && isWanted(); asked += 1) {
    const told = await ask(callId)
    if (!isWanted()) return
    if (told) show(told)
    if (told === null || (told.outcome !== undefined && settled.includes(told.postProcessingStatus))) return
    await new Promise((resolve) => setTimeout(resolve, askEvery))
  }
}

export function hideSummary() {
  element('summary').hidden = true
  const recording = /** @type {HTMLAudioElement} */ (element('recording'))
  recording.pause()
  recording.removeAttribute('src')
}

/** @param {Told} told */
function show({ outcome, postProcessingStatus, duration, dimensions = {}, nextAction, recordingUrl }) {
  const recording = /** @type {HTMLAudioElement} */ (element('recording'))
  const rows = [
    ...Object.entries(dimensions).map(([key, value]) => [wordsOf(key), wordsOf(value)]),
    ...(nextAction === undefined ? [] : [['Next', wordsOf(nextAction)]]),
  ]
  element('summary').hidden = false
  const isSettled = settled.includes(postProcessingStatus)
  const time = duration === undefined ? '' : `, ${Math.round(duration)} s`
  element('outcome').textContent = isSettled ? `${wordsOf(outcome ?? 'over')}${time}` : 'Looking at what was said …'
  element('values').replaceChildren(...rows.flatMap(([name, value]) => [cell('dt', name), cell('dd', value)]))
  recording.hidden = recordingUrl === null
  if (recordingUrl !== null && !recording.hasAttribute('src')) recording.src = recordingUrl
}

/** @param {'dt' | 'dd'} kind @param {string | undefined} text */
function cell(kind, text = '') {
  const made = document.createElement(kind)
  made.textContent = text
  return made
}

/** As a person reads it. @param {unknown} value */
function wordsOf(value) {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  const text = typeof value === 'string' ? value.replaceAll('_', ' ') : JSON.stringify(value)
  return text.charAt(0).toUpperCase() + text.slice(1)
}
