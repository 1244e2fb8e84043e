/** Owns why a call ended, in a sentence. */
import { h } from 'preact'
import { wordsOf } from './format.js'
import { Text } from './parts.js'

/** @typedef {import('./answers').Call} Call */

/** @type {Record<string, string>} */
const outcomes = {
  failed: 'The call failed',
  no_answer: 'Nobody answered',
  busy: 'The line was busy',
  voicemail: 'An answering machine took the call',
  canceled: 'The call was canceled before it was answered',
}

/** @type {Record<string, string>} */
const enders = {
  other_side: 'The other side hung up',
  caller: 'The other side hung up',
  agent: 'The agent ended the call',
  service: 'This service ended the call',
  network: 'The network ended the call',
}

/** Where the service tells no sentence of its own. @param {Call} call */
function sentenceOf({ status, outcome, endedBy, failedReason, endCause, providerStatus }) {
  if (status !== 'completed') return null
  const first = outcomes[outcome ?? ''] ?? enders[endedBy ?? ''] ?? 'The call is over'
  const why = [failedReason && wordsOf(failedReason), endCause, providerStatus].filter(Boolean)
  return why.length > 0 ? `${first} (${why.join(', ')}).` : `${first}.`
}

/** @param {{ call: Call, diagnostics: import('./answers').Diagnostics | null }} props */
export function Ending({ call, diagnostics }) {
  const sentence = diagnostics?.ending ?? sentenceOf(call)
  const warnings = call.warnings ?? []
  if (sentence === null && warnings.length === 0) return null
  return h('section', { class: `card ending ${call.outcome === 'failed' ? 'bad' : ''}`, 'aria-labelledby': 'ending' }, [
    sentence !== null && [
      h('h2', { id: 'ending' }, 'Why it ended'),
      h('p', { class: 'sentence' }, h(Text, null, sentence)),
    ],
    warnings.map(({ type, message }) => h('p', { class: 'notice warn', key: type }, h(Text, null, message))),
  ])
}
