/** Owns how the question about a client is put to a person. What a client says of itself is escaped, short, and said to be its own word. */
import type { AccountId, WorkerId } from '../../model/ids.ts'
import { isForWorker, type McpScope } from '../../model/mcp-access.ts'
import type { SignedIn } from '../../model/user.ts'
import { html, type Html } from '../people/html.ts'
import { formOf, noticeOf, renderPage } from '../people/page.ts'
import { isOnThisDevice, redirectHostOf } from './client-metadata.ts'
import { scopeWords } from './scopes.ts'

export type Asked = {
  /** Of the form. */
  readonly action: string
  readonly clientId: string
  readonly clientName: string
  /** Where the answer of this request goes. */
  readonly redirectUri: string
  readonly scopes: readonly McpScope[]
}

export type Target = {
  readonly accountId: AccountId
  readonly accountName: string
  /** Null: the account itself. */
  readonly worker: { readonly id: WorkerId; readonly name: string } | null
}

type Shown = {
  readonly asked: Asked
  readonly signedIn: SignedIn
  readonly targets: readonly Target[]
  readonly wrong?: string | undefined
}

export function renderConsent({ asked, signedIn, targets, wrong }: Shown): Response {
  const { name, email, csrf } = signedIn
  const body = html`${wrong !== undefined && noticeOf('error', wrong)} ${whoAsks(asked)}
    <p>You are signed in as <strong>${name ?? email}</strong>${name !== null && html` (${email})`}.</p>
    ${viewersOf(signedIn)}
    ${formOf({ action: asked.action, csrf, fields: html`${choices(asked, targets)} ${buttons(targets)}` })}`
  return renderPage({
    title: 'Allow access?',
    body,
    status: wrong === undefined ? 200 : 400,
    formAction: [sourceOf(asked.redirectUri)],
  })
}

/** Of a content security policy: the form's answer leads there. A host policy of an IPv6 address does not exist: its scheme then. */
function sourceOf(uri: string): string {
  const { protocol, origin, hostname } = new URL(uri)
  const isNamed = ['https:', 'http:'].includes(protocol) && !hostname.startsWith('[')
  return isNamed ? origin : protocol
}

function whoAsks({ clientId, clientName, redirectUri }: Asked): Html {
  const isDocument = clientId.startsWith('https://')
  return html`<p><strong class="client-name">${clientName}</strong> asks for access to your account here.</p>
    <dl>
      <dt>The answer goes to</dt>
      <dd><code class="redirect-host">${redirectHostOf(redirectUri)}</code></dd>
      ${
        isDocument &&
        html`<dt>It is described at</dt>
          <dd><code>${clientId}</code></dd>`
      }
    </dl>
    <p class="hint">
      ${
        isDocument
          ? html`Who controls the address it is described at has chosen its name; nobody else has checked it.`
          : html`The name is what the application calls itself, and nobody has checked it: anybody may use any name.`
      }
      Go on only when you have just begun this yourself, and know the place that the answer goes to.
    </p>
    ${isOnThisDevice(redirectUri) && noticeOf('error', onThisDevice)}`
}

const onThisDevice =
  'This application runs on your own device, and any program on it can say that it is this one. Go on only when you have just started it yourself.'

function viewersOf({ memberships }: SignedIn): Html | false {
  const viewed = memberships.filter(({ role }) => role === 'viewer').map(({ accountName }) => accountName)
  return (
    viewed.length > 0 &&
    html`<p class="hint">
      You are only a viewer of ${viewed.join(', ')}. All of this can change something, so you may not allow it there.
    </p>`
  )
}

function choices({ scopes }: Asked, targets: readonly Target[]): Html | false {
  if (targets.length === 0) return html`<p>There is no account, or no worker, that you may allow this for.</p>`
  return html`<fieldset>
      <legend>It asks to</legend>
      ${scopes.map(scopeBox)}
    </fieldset>
    ${targetField(targets, scopes.some(isForWorker))}`
}

const scopeBox = (scope: McpScope): Html =>
  html`<div class="field">
    <label for="scope-${scope}"
      ><input type="checkbox" id="scope-${scope}" name="scope" value="${scope}" checked />
      ${scopeWords[scope].title}</label
    >
    <p class="hint">${scopeWords[scope].details}</p>
  </div>`

function targetField(targets: readonly Target[], isOfWorker: boolean): Html {
  const [only] = targets
  if (only && targets.length === 1 && only.worker === null)
    return html`<p>For the account <strong>${only.accountName}</strong>.</p>
      <input type="hidden" name="target" value="${valueOf(only)}" />`
  return html`<div class="field">
    <label for="target">${isOfWorker ? 'For the worker' : 'For the account'}</label>
    <select id="target" name="target" required>
      ${isOfWorker ? [...byAccount(targets)].map(groupOf) : targets.map((target) => optionOf(target, target.accountName))}
    </select>
  </div>`
}

const byAccount = (targets: readonly Target[]) => Map.groupBy(targets, ({ accountId }) => accountId).values()

const groupOf = (targets: readonly Target[]): Html =>
  html`<optgroup label="${targets[0]?.accountName}">
    ${targets.map((target) => optionOf(target, target.worker?.name ?? 'No worker: the account alone'))}
  </optgroup>`

const optionOf = (target: Target, words: string): Html => html`<option value="${valueOf(target)}">${words}</option>`

const valueOf = ({ accountId, worker }: Target): string => (worker === null ? accountId : `${accountId}/${worker.id}`)

const buttons = (targets: readonly Target[]): Html =>
  html`<div class="actions">
    ${targets.length > 0 && html`<button type="submit" name="decision" value="approve">Allow</button>`}
    <button type="submit" name="decision" value="deny" class="quiet">Deny</button>
  </div>`
