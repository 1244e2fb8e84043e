/** Owns the versions of a script before: when each was given up, what differs from the one of now, and the way back to it. */
import { h } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { lineChanges } from './line-changes.js'
import { longTimeOf } from './format.js'
import { Awaited, Failure } from './parts.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').DocumentVersion} DocumentVersion */

/** @param {{ address: string, current: string, savedAt: string, restore: (text: string) => void, mayRestore: boolean }} props */
export function ScriptVersions({ address, current, savedAt, restore, mayRestore }) {
  const { value, error, reload } = useLoaded(`${address}/versions`)
  const versions = /** @type {DocumentVersion[] | null} */ (value)
  const former = useRef(savedAt)
  useEffect(() => {
    if (former.current !== savedAt) reload()
    former.current = savedAt
  }, [savedAt])
  const [open, setOpen] = useState(/** @type {number | null} */ (null))
  const { shown, pager } = useStretch(versions ?? [], 50)
  return h('details', { class: 'card versions' }, [
    h('summary', null, h('h2', null, `Versions before${versions === null ? '' : ` (${versions.length})`}`)),
    h(Failure, { error, retry: reload }),
    versions !== null &&
      versions.length === 0 &&
      h('p', { class: 'soft' }, 'None yet. Each text that another one takes the place of stays here.'),
    h(
      'ul',
      { class: 'plain-list' },
      shown.map(({ version, savedAt, characters }) =>
        h('li', { key: version }, [
          h(
            'button',
            {
              type: 'button',
              class: 'plain',
              'aria-expanded': open === version,
              onClick: () => setOpen(open === version ? null : version),
            },
            `Version ${version}`,
          ),
          h('span', { class: 'soft' }, ` of ${longTimeOf(savedAt)}, ${characters.toLocaleString()} characters`),
          open === version &&
            h(Difference, { address: `${address}/versions/${version}`, current, restore, mayRestore }),
        ]),
      ),
    ),
    pager,
  ])
}

/** @param {{ address: string, current: string, restore: (text: string) => void, mayRestore: boolean }} props */
function Difference({ address, current, restore, mayRestore }) {
  const { value, error, reload } = useLoaded(address)
  const version = /** @type {DocumentVersion | null} */ (value)
  const former = version?.text ?? ''
  const changes = useMemo(() => (version === null ? [] : lineChanges(former, current)), [version, current])
  if (version === null) return h(Awaited, { error, reload })
  return h('div', { class: 'stack' }, [
    changes.every(({ kind }) => kind === 'same') && h('p', { class: 'soft' }, 'The same as now.'),
    h(
      'div',
      { class: 'table-room', tabIndex: 0, role: 'region', 'aria-label': 'What differs' },
      h(
        'pre',
        { class: 'difference' },
        changes.map(({ kind, line }, index) =>
          h('div', { key: index, class: `line ${kind}` }, [
            h('span', { class: 'sign' }, kind === 'added' ? '+' : kind === 'removed' ? '−' : ' '),
            line,
          ]),
        ),
      ),
    ),
    mayRestore &&
      h(
        'div',
        { class: 'actions' },
        h('button', { type: 'button', class: 'quiet', onClick: () => restore(former) }, 'Go back to this version'),
      ),
  ])
}
