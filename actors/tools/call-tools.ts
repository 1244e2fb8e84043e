/** Owns `call`: what a worker does with the call it is in. docs/contract/tools.md "The set". */
import { z } from 'zod'
import type { Bus } from '../../model/bus.ts'
import { Problem } from '../../model/problem.ts'
import type { Telephony } from '../../model/telephony.ts'
import type { ToolResult } from '../../model/tool.ts'
import { canonicalNumber, readNumber } from '../../net/read-number.ts'
import { countryToRead, findAccount } from '../../store/accounts.ts'
import { listContacts } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallAtHand } from '../../store/tool-calls.ts'
import { createPauseRecording } from '../call/life/pause-recording.ts'
import { reachLeg } from '../node/leg-link.ts'
import type { CallRouter } from '../node/call-router.ts'
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

export type CallToolDeps = {
  readonly sql: Sql
  readonly bus: Bus
  readonly router: CallRouter
  /** May callers of the account be passed on to this number? */
  readonly refusalOf: Telephony['refusalOf']
}
type Deps = CallToolDeps

/** The other side of a call may take long to say whether it tries a transfer; whoever speaks to the caller waits no longer than this. */
const replyTimeout = 9_000

const always = async (): Promise<null> => null

export const callTools = (deps: Deps): WorkerTool[] => [
  defineTool({
    provider: 'call',
    name: 'hang_up',
    description: 'Ends the call.',
    input: z.strictObject({}),
    refusal: always,
    async run({ call }) {
      if (!isActive(call)) return callNotActive()
      const told = await deps.router.route(call.id, { type: 'hang_up_requested', by: 'agent' })
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
      isActive(call) ? commandLeg(deps.bus, call, { type: 'send_dtmf', digits }) : callNotActive(),
  }),
  ...recordingTools(deps),
  defineTool({
    provider: 'call',
    name: 'transfer',
    description: 'Passes the caller on to a contact of this worker, or to another number that is allowed.',
    input: z.strictObject({
      to: z.string().min(1).max(320).describe('Name or id of a contact, or a number in E.164 format.'),
    }),
    async refusal({ canPassOn }) {
      if (canPassOn) return null
      return failure('NOT_AVAILABLE', 'This worker has no telephone trunk to pass callers on with.')
    },
    async run(context, { to }) {
      const { call } = context
      if (!isActive(call)) return callNotActive()
      const number = await transferTarget(deps, context, to)
      if (typeof number !== 'string') return number
      return call.transport === 'webrtc'
        ? notOverWebRtc()
        : commandLeg(deps.bus, call, { type: 'transfer', to: number })
    },
  }),
]

/** Asked again, they change nothing. */
function recordingTools(deps: Deps): WorkerTool[] {
  const { pause, resume } = createPauseRecording(deps)
  const define = (name: string, description: string, ask: typeof pause): WorkerTool =>
    defineTool({
      provider: 'call',
      name,
      description,
      input: z.strictObject({}),
      refusal: async ({ config }) => (config.recordingEnabled === false ? notRecorded() : null),
      async run({ accountId, call }) {
        if (!isActive(call)) return callNotActive()
        const done = ask(accountId, call.id).then(() => success({}))
        return done.catch((error: unknown) => {
          if (error instanceof Problem) return failure('NOT_AVAILABLE', error.message)
          throw error
        })
      },
    })
  const paused = 'Stops recording the call until it is resumed, for what must not be kept, such as a card number.'
  return [
    define('pause_recording', paused, pause),
    define('resume_recording', 'Goes on recording the call after a pause.', resume),
  ]
}

const notRecorded = (): ToolResult => failure('NOT_AVAILABLE', 'Calls of this worker are not recorded.')

type LegWish =
  { readonly type: 'send_dtmf'; readonly digits: string } | { readonly type: 'transfer'; readonly to: string }

/** The leg of the call does it, or says why not. What becomes of a transfer, the call hears from the leg. */
async function commandLeg(bus: Bus, { id, epoch }: CallAtHand, wish: LegWish): Promise<ToolResult> {
  const reply = await reachLeg(bus, id, { ...wish, epoch }, replyTimeout)
  if (reply.type === 'accepted') return success({})
  if (reply.type === 'gone') return callNotActive()
  if (reply.type !== 'refused') return failure('TOOL_FAILED', 'The line of the call did not say whether it will.')
  return failure('NOT_AVAILABLE', `The line of the call cannot do that now: ${reply.details}.`)
}

const notOverWebRtc = (): ToolResult => failure('NOT_AVAILABLE', 'A call over WebRTC cannot be passed on.')

/** Only stored and allowed numbers, so that a caller cannot have the account pay for calls to any number. */
async function transferTarget(
  { sql, refusalOf }: Deps,
  context: ToolContext,
  to: string,
): Promise<string | ToolResult> {
  const number = await dialableOf(sql, context, to)
  if (typeof number !== 'string') return number
  const refused = await refusalOf(context.accountId, number)
  return refused ? failure('NOT_AVAILABLE', `The account does not call that number: ${refused.details}`) : number
}

async function dialableOf(sql: Sql, { accountId, worker }: ToolContext, to: string): Promise<string | ToolResult> {
  const reachable = (await listContacts(sql, accountId, worker.id)).filter(({ phoneNumber }) => phoneNumber !== null)
  const spoken = readNumber(to, await countryToRead(sql, accountId, [to]))
  const match = matchContact(reachable, to, spoken)
  if (match.kind === 'one') return canonicalNumber(match.contact.phoneNumber ?? '')
  const { allowedTransferNumbers = [] } = (await findAccount(sql, accountId))?.config ?? {}
  if (spoken !== null && allowedTransferNumbers.map(canonicalNumber).includes(spoken)) return spoken
  const wrong = match.kind === 'several' ? 'Several contacts have that name; say the number or id.' : 'Unknown target.'
  return failure('NOT_AVAILABLE', `${wrong} This worker can pass callers on to: ${namesOf(reachable)}.`)
}
