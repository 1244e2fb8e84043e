/**
 * Clients that others wrote, as they come, against the whole service: the official SDKs, current and older, the inspector's command line, and the script of
 * docs/mcp-clients.md. From the first 401 over registration, PKCE and a person who approves in Chromium to tokens, calls, a refresh and the end of
 * the grant. With LISTENER_DRIVER set only that HTTP driver is proved; uws-under-newer-libc.test.ts runs this file so.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import type { BrowserContext } from 'playwright-core'
import { test, type Test } from 'tap'
import { hasChromium, chromiumPath, openChromium } from '../peers/chromium.ts'
import { startProgram } from '../peers/peer-program.ts'
import { needsTool } from '../peers/tools.ts'
import { approved, decideIn } from '../scenes/approve-in.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { loads } from '../scenes/listener.ts'
import { openMcpStage, type McpStage } from '../scenes/mcp-stage.ts'
import { openOAuthClient, type OAuthClient } from '../scenes/oauth-client.ts'
import { officialClients, type OfficialClient } from '../scenes/official-clients.ts'

const root = path.resolve(import.meta.dirname, '../..')
const node = path.join(root, 'node_modules/.bin/node')
const run = promisify(execFile)
const skip = hasChromium() ? false : `no ${chromiumPath}`
const listWorkers = 'account_admin__list_workers'

type Scene = { readonly stage: McpStage; readonly context: BrowserContext }

for (const driver of ['node', 'uws'] as const) {
  const wanted = process.env['LISTENER_DRIVER']
  if (wanted !== undefined && wanted !== driver) continue
  if (wanted === undefined && !(await loads(driver))) continue
  void test(`the ${driver} driver`, { skip, timeout: 240_000 }, async (t) => {
    const stage = await openMcpStage(t, driver)
    const { context, close } = await openChromium()
    t.teardown(close)
    for (const client of officialClients)
      await t.test(`${client.name} goes the whole way`, (t) => goWholeWay(t, { stage, context }, client))
    await t.test('who is denied gets no tokens', (t) => isDenied(t, { stage, context }))
    await t.test("the inspector's command line lists and calls", (t) => inspect(t, { stage, context }))
    await t.test('the script of docs/mcp-clients.md does what the page says', (t) => runScript(t, { stage, context }))
    t.same(
      stage.log.lines.filter(({ level }) => level === 'error'),
      [],
      'nothing is a bug',
    )
  })
}

async function goWholeWay(t: Test, { stage, context }: Scene, client: OfficialClient): Promise<void> {
  const { url } = stage
  const oauth = await openOAuthClient(t, { name: client.name, scope: 'account_admin' })
  await knowsWhereToAsk(t, url)
  await t.rejects(client.connect(url, oauth).catch(unauthorizedOr(client)), 'a person has to approve first')
  const asked = new URL(oauth.authorizationUrl()).searchParams
  t.equal(asked.get('code_challenge_method'), 'S256')
  t.equal(asked.get('client_id'), oauth.registered().client_id)
  t.equal(asked.get('resource'), url.href)

  const said = await decideIn(context, oauth.authorizationUrl())
  for (const what of [client.name, 'Acme', 'Manage the whole account', new URL(oauth.redirectUrl).host])
    t.match(said, what, 'the person was shown it')
  await client.finish(url, oauth, await oauth.returned())
  t.same(oauth.tokens().scope, 'account_admin')

  const connection = await client.connect(url, oauth)
  t.equal(connection.protocolVersion, client.protocolVersion)
  const names = (await connection.listTools()).map(({ name }) => name)
  t.equal(names.length, 30, 'all tools of the account')
  t.ok(names.every((name) => name.startsWith('account_admin__')))
  await seesTheWorker(t, connection.callTool(listWorkers), stage)

  const { access_token: former, refresh_token: formerRefresh } = oauth.tokens()
  oauth.pretend('an-access-token-that-is-over')
  await seesTheWorker(t, connection.callTool(listWorkers), stage)
  t.not(oauth.tokens().access_token, former, 'it has got another access token')
  t.not(oauth.tokens().refresh_token, formerRefresh, 'and another refresh token')
  t.equal(oauth.redirects(), 1, 'and nobody was asked again')

  await revoke(t, stage, oauth)
  await t.rejects(connection.callTool(listWorkers).catch(unauthorizedOr(client)), 'a person has to approve anew')
  t.equal(oauth.redirects(), 2)
  await connection.close()
}

/** Rejects with what it got when that says that a person has to approve; resolves, and fails the test, for anything else. */
const unauthorizedOr = (client: OfficialClient) => (error: unknown) => {
  if (client.isUnauthorized(error)) throw error
  return error
}

async function seesTheWorker(
  t: Test,
  called: Promise<{ isError?: boolean | undefined; structuredContent?: unknown; content: readonly unknown[] }>,
  { workerId }: McpStage,
): Promise<void> {
  const { isError = false, structuredContent, content } = await called
  t.equal(isError, false)
  t.match(JSON.stringify(structuredContent), workerId)
  const [{ text }] = content as [{ text: string }]
  t.same(JSON.parse(text), structuredContent, 'the text says the same')
}

/** The first answer names the metadata of the resource, which names the authorization server, which tells its endpoints. */
async function knowsWhereToAsk(t: Test, url: URL): Promise<void> {
  const refused = await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' })
  t.equal(refused.status, 401)
  const challenge = refused.headers.get('www-authenticate') ?? ''
  const [, where = ''] = /resource_metadata="([^"]+)"/.exec(challenge) ?? []
  const resource = await read(where)
  t.equal(resource['resource'], url.href)
  const server = await readServer(url)
  t.same(resource['authorization_servers'], [server['issuer']])
  t.same(server['code_challenge_methods_supported'], ['S256'])
  t.equal(server['registration_endpoint'], new URL('/oauth/register', url).href)
  t.equal(server['authorization_endpoint'], new URL('/oauth/authorize', url).href)
  t.equal(server['token_endpoint'], new URL('/oauth/token', url).href)
}

const readServer = (url: URL) => read(new URL('/.well-known/oauth-authorization-server', url).href)

async function read(url: string): Promise<Record<string, unknown>> {
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  return (await answer.json()) as Record<string, unknown>
}

const post = (url: URL, message: object, token?: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(message),
  })

async function revoke(t: Test, { url }: McpStage, oauth: OAuthClient): Promise<void> {
  const { access_token, refresh_token = '' } = oauth.tokens()
  const body = new URLSearchParams({ token: refresh_token, client_id: oauth.registered().client_id })
  const endpoint = String((await readServer(url))['revocation_endpoint'])
  const answer = await fetch(endpoint, { method: 'POST', body })
  t.equal(answer.status, 200, await answer.text())
  const after = await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, access_token)
  t.equal(after.status, 401, 'its access token has ended with it')
  t.match(after.headers.get('www-authenticate'), 'error="invalid_token"')
}

async function isDenied(t: Test, { stage, context }: Scene): Promise<void> {
  const [client] = officialClients as [OfficialClient]
  const oauth = await openOAuthClient(t, { name: 'Unwanted', scope: 'account_admin' })
  await t.rejects(client.connect(stage.url, oauth))
  await decideIn(context, oauth.authorizationUrl(), 'Deny')
  const returned = await oauth.returned()
  t.equal(returned.get('error'), 'access_denied')
  t.equal(returned.get('code'), null)
}

async function inspect(t: Test, { stage, context }: Scene): Promise<void> {
  const inspector = needsTool(t, 'the MCP inspector, installed by .ci/mcp-inspector.sh', [
    path.join(root, '.data/mcp-inspector/node_modules/.bin/mcp-inspector'),
  ])
  if (inspector === null) return
  const { access_token: token } = (await approved(t, { url: stage.url, context, name: 'Inspector' })).tokens()
  const home = await createFolder(t)
  const given = [
    '--cli',
    stage.url.href,
    '--transport',
    'http',
    '--header',
    `Authorization: Bearer ${token}`,
    '--method',
  ]
  const ask = async (...words: string[]) => {
    const { stdout } = await run(node, [inspector, ...given, ...words], { cwd: home, env: { HOME: home } })
    return JSON.parse(stdout) as { tools?: object[]; structuredContent?: unknown; content: unknown[] }
  }
  t.equal((await ask('tools/list', '--strict')).tools?.length, 30)
  await seesTheWorker(t, ask('tools/call', '--tool-name', listWorkers), stage)
}

async function runScript(t: Test, { stage, context }: Scene): Promise<void> {
  const page = await readFile(path.join(root, 'docs/mcp-clients.md'), 'utf8')
  const [, script = ''] = /```ts\n([\s\S]*?)```/.exec(page) ?? []
  // Inside the project, so that the packages are found.
  const folder = path.join(root, '.data/documented')
  await mkdir(folder, { recursive: true })
  const file = path.join(folder, `script-${process.pid}.ts`)
  await writeFile(file, script)
  const program = startProgram(node, [file, stage.url.href], folder)
  t.teardown(() => program.close())
  const address = await until(async () => /^Open (\S+)$/m.exec(program.output())?.[1] ?? false)
  await decideIn(context, address)
  t.equal(await program.ended, 0, program.output())
  t.match(program.output(), stage.workerId)
}
