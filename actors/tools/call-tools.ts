/** Owns `call`: what a worker does with the call it is in. decisions.md, Tools of a worker. */
import { z } from 'zod'
import type { Transport } from '../../model/call.ts'
import { PhoneNumber } from '../../model/phone-number.ts'
import type { ToolResult } from '../../model/tool.ts'
import { findAccount } from '../../store/accounts.ts'
import { listContacts } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import { findWayOut } from '../../store/telephony.ts'
import type { CallAtHand } from '../../store/tool-calls.ts'
import type { Switchboard } from '../switchboard.ts'
import { matchContact, namesOf } from './contacts.ts'
import {
  callNotActive,
  defineTool,
  failure,
  isActive,
  success,
  type ToolContext,
  type WorkerTool,
} from './worker-tool.ts'

type Deps = { readonly sql: Sql; readonly switchboard: Pick<Switchboard, 'deliver'> }

const always = async (): Promise<null> => null

export const callTools = ({ sql, switchboard }: Deps): WorkerTool[] => [
  defineTool({
    provider: 'call',
    name: 'hang_up',
    description: 'Ends the call.',
    input: z.strictObject({}),
    refusal: always,
    async run({ call }) {
      if (!isActive(call)) return callNotActive()
      const told = await switchboard.deliver(call.id, { type: 'hang_up_requested' })
      return told ? success({}) : callNotActive()
    },
  }),
  defineTool({
    provider: 'call',
    name: 'send_dtmf',
    description: 'Presses keys of the telephone, for the menus of other systems.',
    input: z.strictObject({
      digits: z
        .string()
        .regex(/^[0-9A-D*#]{1,32}$/, 'must be 1 to 32 keys: 0-9, A-D, * and #')
        .describe('For example 42#.'),
    }),
    refusal: always,
    run: async ({ call }, { digits }) =>
      isActive(call) ? commandLeg(call, { type: 'send_dtmf', digits }) : callNotActive(),
  }),
  defineTool({
    provider: 'call',
    name: 'transfer',
    description: 'Passes the caller on to a contact of this worker, or to another number that is allowed.',
    input: z.strictObject({
      to: z.string().min(1).max(320).describe('Name or id of a contact, or a number in E.164 format.'),
    }),
    async refusal({ accountId, worker }) {
      if ((await findWayOut(sql, accountId, worker.id)).ofWorker > 0) return null
      return failure('NOT_AVAILABLE', 'This worker has no telephone trunk to pass callers on with.')
    },
    async run(context, { to }) {
      if (!isActive(context.call)) return callNotActive()
      const number = await transferTarget(sql, context, to)
      return typeof number === 'string' ? commandLeg(context.call, { type: 'transfer', number }) : number
    },
  }),
]

type LegWish =
  { readonly type: 'send_dtmf'; readonly digits: string } | { readonly type: 'transfer'; readonly number: string }

/** The one place where a wish of a tool becomes a command to the leg. No leg can do either yet. */
function commandLeg({ transport }: CallAtHand, wish: LegWish): ToolResult {
  const what = wish.type === 'transfer' ? 'passed on' : 'sent keys'
  return failure('NOT_AVAILABLE', `A call over ${transportNames[transport]} cannot be ${what}.`)
}

const transportNames: Readonly<Record<Transport, string>> = { webrtc: 'WebRTC', sip_trunk: 'a SIP trunk' }

/** Numbers that are stored or allowed, so that no caller can have the account pay for a call to anywhere. */
async function transferTarget(sql: Sql, { accountId, worker }: ToolContext, to: string): Promise<string | ToolResult> {
  const reachable = (await listContacts(sql, accountId, worker.id)).filter(({ phoneNumber }) => phoneNumber !== null)
  const match = matchContact(reachable, to)
  if (match.kind === 'one') return match.contact.phoneNumber ?? ''
  const { allowedTransferNumbers = [] } = (await findAccount(sql, accountId))?.config ?? {}
  const dialable = [...reachable.map(({ phoneNumber }) => phoneNumber), ...allowedTransferNumbers]
  const spoken = to.replace(/[\s().-]/g, '')
  if (PhoneNumber.safeParse(spoken).success && dialable.includes(spoken)) return spoken
  const wrong = match.kind === 'several' ? 'Several contacts have that name; say the number or id.' : 'Unknown target.'
  return failure('NOT_AVAILABLE', `${wrong} This worker can pass callers on to: ${namesOf(reachable)}.`)
}
