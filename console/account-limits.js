/** Owns what the account may: set by the operator and shown, what of it is used, and the one switch that is the owner's. */
import { h } from 'preact'
import { ask } from './ask.js'
import { Form } from './form.js'
import { Awaited, Fact, Facts, Section, Text } from './parts.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./account-answers').AccountLimits} AccountLimits */

export function Limits() {
  const { api } = useHere()
  const { value, error, reload } = useLoaded(`${api}/limits`)
  const limits = /** @type {AccountLimits | null} */ (value)
  if (limits === null) return h(Awaited, { error, reload })
  return [
    h(Section, { id: 'limits', title: 'Limits' }, [
      h(Facts, { label: 'Limits' }, [
        h(Fact, { name: 'Calls at once' }, `${limits.runningCalls} of ${limits.maxConcurrentCalls}`),
        h(Fact, { name: 'Minutes of outbound calls today' }, usedOf(limits.minutesToday, limits.dailyMinutes)),
        h(Fact, { name: 'Outbound calls a second' }, limits.maxCallsPerSecond ?? 'any number'),
        h(Fact, { name: 'May call' }, h(Text, null, destinationsOf(limits))),
        h(
          Fact,
          { name: 'Passes callers on to' },
          h(Text, null, ['contacts of workers', ...limits.allowedTransferNumbers].join(', ')),
        ),
        h(Fact, { name: 'Voice engine fails' }, limits.embeddedFallback ? 'the embedded one speaks' : 'the call fails'),
        h(
          Fact,
          { name: 'Recording' },
          limits.recordingEnabled ? 'unless a worker says no' : 'only where a worker says so',
        ),
      ]),
      h('p', { class: 'hint' }, 'The operator of this deployment sets them.'),
    ]),
    h(Confirmations, { limits, reload }),
  ]
}

/** @param {number} used @param {number | undefined} most */
const usedOf = (used, most) => (most === undefined ? `${used}, any number` : `${used} of ${most}`)

/** @param {AccountLimits} limits */
function destinationsOf({ allowedDestinations, homeCountryOnly, homeCountry }) {
  if (allowedDestinations !== undefined)
    return allowedDestinations.length === 0 ? 'nobody' : `numbers that begin with ${allowedDestinations.join(', ')}`
  if (!homeCountryOnly) return 'every country'
  return homeCountry === undefined ? 'the country of its first number' : `numbers of ${homeCountry}`
}

/** @param {{ limits: AccountLimits, reload: () => void }} props */
function Confirmations({ limits, reload }) {
  const { api, isOwner } = useHere()
  return h(Section, { id: 'confirmations', title: 'Calls of applications' }, [
    h(Form, {
      action: 'Save',
      done: 'Saved.',
      disabled: !isOwner,
      fields: [
        {
          name: 'isRequired',
          label: 'A user confirms each call that an application places',
          kind: /** @type {const} */ ('checkbox'),
          checked: limits.requireConfirmationForOutboundCalls,
          hint: isOwner
            ? 'Without it, an application (MCP) calls whom it wants, within the limits.'
            : 'Owners change it.',
        },
      ],
      save: async ({ checks }) => {
        const json = { requireConfirmationForOutboundCalls: checks['isRequired'] === true }
        await ask(`${api}/limits`, { method: 'PATCH', json })
        reload()
      },
    }),
  ])
}
