/** Owns how a load asks the API of the service it loads: with the key it was given, and in bounded time. */

type Access = { readonly url: string; readonly key: string; readonly accountId: string }
type Question = { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: unknown }

const answeredWithin = 20_000

/** `/v1/accounts/{accountId}/<path>`. Throws with the status and code of a refusal. */
export const askService = ({ url, key, accountId }: Access, question: Question): Promise<unknown> =>
  ask(new URL(`/v1/accounts/${accountId}/${question.path}`, url), key, question)

async function ask(url: URL, key: string, { method, body }: Question): Promise<unknown> {
  const answer = await fetch(url, {
    method,
    headers: { 'x-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
    signal: AbortSignal.timeout(answeredWithin),
    redirect: 'error',
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    throw new Error(`the API does not answer: ${causeOf(error)}`, { cause: error })
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`the API refused with ${answer.status}${codeIn(text)}`)
  return JSON.parse(text)
}

const causeOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message
  return String(cause)
}

const codeIn = (text: string): string => {
  const [, code] = /"type"\s*:\s*"(\w{1,60})"/.exec(text) ?? []
  return code === undefined ? '' : ` ${code}`
}
