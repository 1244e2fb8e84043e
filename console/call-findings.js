/** Owns what was learned in a call: its summary, the next action and each value with the words that show it, which can be heard. */
import { h } from 'preact'
import { Section, Text } from './parts.js'

/** @typedef {import('./answers').Evidence} Evidence */

/** @param {unknown} value */
const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value))

/** @param {{ evidence: Evidence | undefined, hear: ((turn: number) => void) | null }} props */
function Shown({ evidence, hear }) {
  if (!evidence) return null
  const quote = h(Text, null, `“${evidence.quote}”`)
  return hear
    ? h('button', { type: 'button', class: 'plain quote', title: 'Hear it', onClick: () => hear(evidence.turn) }, [
        '▸ ',
        quote,
      ])
    : h('span', { class: 'hint' }, quote)
}

/** @param {{ name: string, value: unknown, evidence: Evidence | undefined, hear: ((turn: number) => void) | null }} props */
const Finding = ({ name, value, evidence, hear }) =>
  h('div', { class: 'finding' }, [
    h('dt', null, h(Text, null, name)),
    h('dd', null, [h('div', { class: 'finding-value' }, h(Text, null, textOf(value))), h(Shown, { evidence, hear })]),
  ])

/** @param {{ call: import('./answers').Call, hear: ((turn: number) => void) | null }} props */
export function Findings({ call, hear }) {
  const { summary, nextAction, nextActionData = {}, dimensions = {}, evidence = {} } = call
  const values = Object.entries(dimensions)
  const isEmpty = summary === undefined && nextAction === undefined && values.length === 0
  return h(Section, { id: 'findings', title: 'What was learned' }, [
    summary !== undefined && h('p', { class: 'summary' }, h(Text, null, summary)),
    isEmpty &&
      h(
        'p',
        { class: 'soft' },
        call.status === 'completed'
          ? 'Nothing: give the worker dimensions or next actions, and each call is read for them.'
          : 'It is read when the call is over.',
      ),
    h('dl', { class: 'findings' }, [
      nextAction !== undefined &&
        h(Finding, { name: 'Next action', value: nextAction, evidence: evidence['nextAction'], hear }),
      Object.entries(nextActionData).map(([name, value]) =>
        h(Finding, {
          key: `of ${name}`,
          name: `Next action: ${name}`,
          value,
          evidence: evidence[`nextAction.${name}`],
          hear,
        }),
      ),
      values.map(([name, value]) => h(Finding, { key: name, name, value, evidence: evidence[name], hear })),
    ]),
  ])
}
