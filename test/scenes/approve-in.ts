/**
 * Owns what a person does in a browser that an MCP client has opened: signs in where asked, looks at what is asked for, and decides.
 */
import type { BrowserContext, Page } from 'playwright-core'
import { approver } from './mcp-stage.ts'
import { openOAuthClient, type OAuthClient } from './oauth-client.ts'
import { officialClients, type OfficialClient } from './official-clients.ts'

export type Decision = 'Allow' | 'Deny'

/** Resolves with what the consent page said, when the browser is back at the client. */
export async function decideIn(context: BrowserContext, url: string, decision: Decision = 'Allow'): Promise<string> {
  const page = await context.newPage()
  try {
    await page.goto(url)
    await signIn(page)
    const said = await page.locator('main').innerText()
    await page.getByRole('button', { name: decision, exact: true }).click()
    await page.waitForURL(/^http:\/\/127\.0\.0\.1:\d+\/callback\?/)
    return said
  } finally {
    await page.close()
  }
}

async function signIn(page: Page): Promise<void> {
  const email = page.getByLabel('E-mail address')
  if (!(await email.isVisible())) return
  await email.fill(approver.email)
  await page.getByLabel('Password').fill(approver.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await email.waitFor({ state: 'detached' })
}

type Wanted = {
  readonly url: URL
  readonly context: BrowserContext
  /** The current one without it. */
  readonly client?: OfficialClient
  readonly name?: string
}

/** A client that a person has approved for the account. */
export async function approved(
  t: Parameters<typeof openOAuthClient>[0],
  { url, context, client = current(), name = client.name }: Wanted,
): Promise<OAuthClient> {
  const oauth = await openOAuthClient(t, { name, scope: 'account_admin' })
  await client.connect(url, oauth).catch((error: unknown) => {
    if (!client.isUnauthorized(error)) throw error
  })
  await decideIn(context, oauth.authorizationUrl())
  await client.finish(url, oauth, await oauth.returned())
  return oauth
}

function current(): OfficialClient {
  const [client] = officialClients
  if (!client) throw new Error('there is no client')
  return client
}
