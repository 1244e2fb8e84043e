/** Owns the replay check of a call: whether its log leads to the same steps once more. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { Failure, Section } from './parts.js'
import { useAction } from './use-action.js'

/** @typedef {import('./answers').ReplayCheck} ReplayCheck */

/** @type {Record<ReplayCheck['verdict'], { tone: string, text: string }>} */
const verdicts = {
  same: { tone: 'good', text: 'The log replays to the same steps.' },
  different: { tone: 'bad', text: 'The log does not replay alike: another version ran the call, or there is a bug.' },
  unfinished: { tone: 'warn', text: 'As far as it came all was the same; the log is longer than one check takes.' },
  no_log: { tone: 'warn', text: 'There is no log: it has been removed, or none was kept.' },
}
const shown = 20

/** @param {{ address: string }} props */
export function Replay({ address }) {
  const [found, setFound] = useState(/** @type {ReplayCheck | null} */ (null))
  const { isRunning, error, run } = useAction()
  const check = () => run(async () => setFound(await ask(`${address}/replay`)))
  return h(Section, { id: 'replay', title: 'Replay check' }, [
    h('p', { class: 'soft' }, 'Each call is run by a log of facts. The same facts must lead to the same steps.'),
    h(
      'button',
      { type: 'button', class: 'quiet', disabled: isRunning, onClick: check },
      isRunning ? 'Replaying …' : 'Replay the log',
    ),
    h(Failure, { error }),
    h('div', { role: 'status' }, found && !isRunning && !error && h(Found, { found })),
  ])
}

/** @param {{ found: ReplayCheck }} props */
function Found({ found: { verdict, facts, ignored, effects, different, differences } }) {
  const { tone, text } = verdicts[verdict]
  return [
    h('p', { class: `notice ${tone}` }, text),
    facts > 0 &&
      h(
        'p',
        { class: 'soft' },
        `${facts.toLocaleString()} facts (${ignored} ignored), ${effects.toLocaleString()} effects.`,
      ),
    different > 0 &&
      h(
        'ul',
        { class: 'plain-list' },
        differences.slice(0, shown).map(({ seq, fact }) => h('li', { key: seq }, `Step ${seq}: ${fact}`)),
      ),
    different > shown && h('p', { class: 'soft' }, `and ${(different - shown).toLocaleString()} more`),
  ]
}
