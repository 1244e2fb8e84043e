/** Owns how a deployment is asked: by its REST API, with a key of the account whose worker is called, as any integrator does. */
import { z } from 'zod'
import { PhoneCall, PhoneCallPage, TranscriptSegment } from '../../model/phone-call.ts'
import { accountOfKey } from '../account-of-key.ts'
import { Cannot } from '../cannot.ts'

export type Deployment = {
  readonly url: string
  readonly key: string
  readonly accountId: string
  /** Of the worker with this name or id; the first one without. Throws when there is none. */
  worker(wanted: string | undefined): Promise<CalledWorker>
  call(callId: string): Promise<PhoneCall>
  transcript(callId: string): Promise<readonly TranscriptSegment[]>
  /** The newest inbound call from this number. */
  callFrom(number: string): Promise<PhoneCall | null>
  /** `path` below the account's. Throws with the answer when it is refused. */
  ask(method: 'GET' | 'POST' | 'DELETE' | 'PATCH', path: string, body?: unknown): Promise<unknown>
}

const Worker = z.object({
  id: z.string(),
  name: z.string(),
  inboundPhoneNumber: z.string().nullish(),
})
export type CalledWorker = z.infer<typeof Worker>

const answeredWithin = 30_000

/** Rejects with Cannot where address or key are not good. */
export async function openDeployment({
  url,
  key,
}: {
  readonly url: string
  readonly key: string
}): Promise<Deployment> {
  const accountId = await accountOfKey({ url, key })
  const ask: Deployment['ask'] = (method, path, body) =>
    asked({ url, key }, method, `/v1/accounts/${accountId}${path}`, body)
  return {
    url,
    key,
    accountId,
    ask,
    async worker(wanted) {
      const workers = z.array(Worker).parse(await ask('GET', '/workers'))
      const found = wanted === undefined ? workers[0] : workers.find(({ id, name }) => id === wanted || name === wanted)
      if (found) return found
      const names = workers.map(({ name }) => name).join(', ')
      throw new Cannot(`there is no worker ${wanted ?? ''}; the account has: ${names || 'none'}`)
    },
    call: async (callId) => PhoneCall.parse(await ask('GET', `/phone-calls/${callId}`)),
    transcript: async (callId) =>
      z.array(TranscriptSegment).parse(await ask('GET', `/phone-calls/${callId}/transcript`)),
    async callFrom(number) {
      const { data } = PhoneCallPage.parse(await ask('GET', '/phone-calls?direction=inbound&limit=20'))
      return data.find(({ fromNumber }) => fromNumber === number) ?? null
    },
  }
}

async function asked(
  { url, key }: { readonly url: string; readonly key: string },
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const answer = await fetch(new URL(path, url), {
    method,
    headers: { 'x-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(answeredWithin),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Cannot(`${method} ${path} was refused with ${answer.status}: ${text.slice(0, 500)}`)
  return text === '' ? null : (JSON.parse(text) as unknown)
}
