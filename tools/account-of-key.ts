/** Owns the first question to a deployment: whose key it is. What is wrong with address, key or service is said in a sentence before anything is begun. */
import { reasonOf } from '../app/told-failure.ts'
import { ErrorBody } from '../model/problem.ts'
import { Cannot } from './cannot.ts'

type Named = { readonly url: string; readonly key: string }

const answeredWithin = 20_000

/** Rejects with Cannot. */
export async function accountOfKey({ url, key }: Named): Promise<string> {
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Cannot('--key is no API key: it must be one word of printable ASCII')
  const signal = AbortSignal.timeout(answeredWithin)
  const answer = await fetch(new URL('/v1/accounts/current', url), {
    headers: { 'x-api-key': key },
    redirect: 'manual',
    signal,
  }).catch((error: unknown) => {
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new Cannot(`--url ${url} cannot be reached: ${signal.aborted ? silent : reasonOf(reason)}`, { cause: error })
  })
  const text = await answer.text().catch(() => '')
  if (!answer.ok) throw refusalOf(url, answer, text)
  const id = (jsonOf(text) as { readonly id?: unknown } | null)?.id
  if (typeof id !== 'string') throw new Cannot(`--url ${url} is no Parley: it answers with something else`)
  return id
}

const silent = `nobody answers within ${answeredWithin / 1000} s`

function refusalOf(url: string, { status, headers }: Response, text: string): Cannot {
  const told = ErrorBody.safeParse(jsonOf(text)).data
  if (status === 401 && told) return new Cannot(`--key is not good at ${url}: ${told.details}`)
  if (told) return new Cannot(`${url} refuses with ${status} ${told.type}: ${told.details}`)
  const location = headers.get('location')
  if (status >= 300 && status < 400 && location !== null)
    return new Cannot(`--url ${url} leads elsewhere: name ${new URL(location, url).origin} if that is meant`)
  return new Cannot(`--url ${url} is no Parley, or something before it refuses: it answers ${status}`)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
