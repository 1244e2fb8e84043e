/**
 * Owns two accounts as tools of the MCP endpoint find them, each with one of everything that an argument can name, and the words of the other one that
 * nobody else may read.
 */
import type { Test } from 'tap'
import type { AccountId } from '../../model/ids.ts'
import { createDocument } from '../../store/documents.ts'
import { createPerson } from '../../store/persons.ts'
import { newId, start } from './seeded-api.ts'
import { openMcp } from './mcp.ts'
import type { ArgumentSchema } from './tool-arguments.ts'

export type ListedTool = {
  readonly name: string
  readonly inputSchema: ArgumentSchema
  readonly annotations: { readonly readOnlyHint: boolean }
}

export type ToolTenant = {
  readonly accountId: AccountId
  readonly token: string
  /** By the name of the argument. */
  readonly ids: Readonly<Record<string, unknown>>
  /** What only this account may read. */
  readonly secrets: readonly string[]
}

/** What a tool answered, or the error of the protocol in its place. */
export type Called = {
  readonly status: number
  readonly isError: boolean
  readonly structuredContent?: { readonly code?: string; readonly message?: string }
  readonly error?: { readonly code: number; readonly message: string }
  readonly text: string
}

export async function openMcpTenants(t: Test) {
  const mcp = await openMcp(t)
  const { sql, send, grant } = mcp

  async function seed(account: typeof mcp.own, word: string): Promise<ToolTenant> {
    const token = grant({ accountId: account.id, clientId: `client-${word}` })
    const made = { accountId: account.id, newId, now: start }
    const workerId = account.worker.id
    const { id: person_id } = await createPerson(sql, {
      ...made,
      request: {
        type: 'customer',
        firstName: word,
        lastName: `${word}sson`,
        phoneNumber: '+4930123456',
        notes: `${word} notes`,
      },
    })
    const document = { ...made, status: 'completed', workerIds: [workerId] } as const
    const text = { title: `${word} document`, fileName: 'text.txt', content: `${word} text`, tagKeys: ['faq'] }
    const document_id = await createDocument(sql, { ...document, ...text })
    const script = { title: `${word} script`, fileName: 'script.txt', content: `say "${word}"` }
    const script_id = await createDocument(sql, { ...document, ...script, tagKeys: ['outbound_call_script'] })
    const number = `+49309999${String(word.length).padStart(4, '0')}`
    await sql`update workers set outbound_phone_number = ${number} where id = ${workerId}`
    const post = async (path: string, json: unknown) => {
      const answer = await mcp.ask(`/v1/accounts/${account.id}${path}`, { method: 'POST', key: account.key, json })
      if (answer.status !== 200) throw new Error(`seeding ${path} answered ${answer.text}`)
      return answer.json as { id: string }
    }
    await post('/trunks', { name: 'Way out', gateways: [{ host: '203.0.113.5' }], workerIds: [workerId] })
    const scheduledAt = new Date(start + 3_600_000).toISOString()
    const { id: call_id } = await post('/phone-calls', { workerId, phoneNumber: '+4930123456', scheduledAt })
    const ids = {
      worker_id: workerId,
      person_id,
      document_id,
      call_id,
      call_script_document_id: script_id,
      call_script_document_ids: [script_id],
    }
    return { accountId: account.id, token, ids, secrets: [word, account.worker.name, account.id] }
  }

  const own = await seed(mcp.own, 'Ownword')
  const other = await seed(mcp.other, 'Foreignword')
  const listed = await send('tools/list', {}, { token: own.token })
  const { tools } = listed.json.result as { tools: ListedTool[] }

  async function callAs(tenant: ToolTenant, name: string, given: unknown, era: 'modern' | 'legacy' = 'modern') {
    const { status, json, text } = await send('tools/call', { name, arguments: given }, { token: tenant.token, era })
    const { isError = false, structuredContent } = json?.result ?? {}
    return { status, isError, structuredContent, error: json?.error, text } as Called
  }

  /** Of all that is stored, table by table. */
  async function stored() {
    const tables = await sql<{ name: string }[]>`
      select table_name as name from information_schema.tables where table_schema = 'public' order by 1`
    const rows = await Promise.all(
      tables.map(
        ({ name }) => sql`select count(*) as count, md5(string_agg(t::text, '|' order by t::text)) from ${sql(name)} t`,
      ),
    )
    return tables.map(({ name }, index) => ({ name, rows: rows[index]?.[0] }))
  }

  return { ...mcp, tools, own, other, callAs, stored }
}

/** An answer without the id that it may repeat. */
export const shownOf = ({ isError, structuredContent, error }: Called, id: string): string =>
  JSON.stringify({ isError, structuredContent, error }).replaceAll(id, '<id>')
