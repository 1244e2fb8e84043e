/** Owns how a measure of simulated callers reads, on its page and in the reports of `npm run simulate`. Pure. docs/simulate.md "Measures". */
import { msOf } from './format.js'

const shares = ['responseRate', 'yieldRate', 'backchannelsIgnored', 'ticsIgnored', 'asidesIgnored']
const counts = ['deadAirOver3s', 'agentInterruptions']
/** Of fewer events a share says too little to be shown. */
const shownFrom = 10

/** @type {import('./measure-words').ValueWords} */
export function valueWords(name, value) {
  if (value === null || value === undefined) return 'none'
  if (shares.includes(name)) return `${Math.round(value * 100)} %`
  return counts.includes(name) ? value.toFixed(2) : msOf(value)
}

/** @type {import('./measure-words').MeasureWords} */
export function measureWords({ name, value, events, reason }) {
  if (value === null || value === undefined) return `none: ${reason ?? 'nothing was measured'}`
  return shares.includes(name) && events < shownFrom ? 'too few to tell' : valueWords(name, value)
}
