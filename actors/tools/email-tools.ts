/**
 * Owns `email`: a worker writes to one of its contacts or to its caller, and to nobody else, so that no caller can talk it into sending
 * mail to the world. docs/contract/tools.md "The set".
 */
import { z } from 'zod'
import { oneLine } from '../../model/one-line.ts'
import type { ToolResult } from '../../model/tool.ts'
import { listContacts } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import { matchContact, namesOf } from './contacts.ts'
import type { Email, EmailResult } from './email.ts'
import { defineTool, failure, success, type ToolContext, type WorkerTool } from './worker-tool.ts'

/** `email` is null where no SMTP server is configured. */
type Deps = { readonly sql: Sql; readonly email: Email | null }

const message = {
  to: z
    .string()
    .min(1)
    .max(320)
    .describe('Name, id or address of a contact of this worker, or the address of the caller.'),
  subject: z.string().min(1).max(200).refine(oneLine, 'must be one line').describe('One line.'),
  text: z.string().min(1).max(20_000).describe('Plain text.'),
}

export const emailTools = ({ sql, email }: Deps): WorkerTool[] => [
  defineTool({
    provider: 'email',
    name: 'send',
    description: 'Sends an email to a contact of this worker or to the stored address of the caller.',
    input: z.strictObject(message),
    async refusal({ config }) {
      if (config.emailEnabled && email) return null
      return failure('NOT_AVAILABLE', 'This worker cannot send email.')
    },
    async run(context, { to, subject, text }, signal) {
      const address = await addressOf(sql, context, to)
      if (typeof address !== 'string') return address
      const sent = await email?.send({ to: address, subject, text, signal })
      return sent ? resultOf(sent, address) : failure('NOT_AVAILABLE', 'This worker cannot send email.')
    },
  }),
]

/** Only addresses that are stored are written to: what was said on the line only chooses among them. */
async function addressOf(sql: Sql, context: ToolContext, to: string): Promise<string | ToolResult> {
  const { accountId, worker, caller } = context
  const own = caller?.person?.email ?? null
  if (own !== null && own.toLowerCase() === to.trim().toLowerCase()) return own
  const reachable = (await listContacts(sql, accountId, worker.id)).filter(({ email }) => email !== null)
  const match = matchContact(reachable, to)
  if (match.kind === 'one') return match.contact.email ?? ''
  const callers = own === null ? '' : ', and the caller at the stored address'
  const whom = `This worker can write to: ${namesOf(reachable)}${callers}.`
  const wrong =
    match.kind === 'several' ? 'Several contacts have that name; say the address or id.' : 'Unknown recipient.'
  return failure('NOT_AVAILABLE', `${wrong} ${whom}`)
}

function resultOf(sent: EmailResult, address: string): ToolResult {
  if (sent.kind === 'sent') return success({ to: address, messageId: sent.messageId })
  if (sent.timedOut)
    return failure('TOOL_TIMEOUT', 'The mail server did not answer in time; the email may not have been sent.')
  return failure('TOOL_FAILED', 'The email could not be sent.')
}
