/**
 * docs/contract/rest.md "Requests": who may not ask is answered before the body has come. A real listener and database; the bodies of these
 * requests never come to their end.
 */
import { once } from 'node:events'
import net from 'node:net'
import { test, type Test } from 'tap'
import { createApi } from '../../api/api.ts'
import { renderTooLarge } from '../../api/render.ts'
import type { ListenOptions } from '../../gateway/listener/listen.ts'
import { serve } from '../scenes/listener.ts'
import { newId, openSeededApi } from '../scenes/seeded-api.ts'

async function openListener(t: Test, options: Partial<ListenOptions> = {}) {
  const { deps, own, other } = await openSeededApi(t)
  const fetch = createApi({ ...deps, rateLimits: { perAccount: 1_000, perAddress: 20 } })
  const { port } = await serve(t, 'node', {
    maxBodyBytes: 1024 * 1024,
    // Each question is another client's, where a test says no other.
    fetch: (request, info) =>
      fetch(request, { ...info, remoteAddress: request.headers.get('x-from') ?? info.remoteAddress }),
    tooLarge: (request) => renderTooLarge(request, newId),
    ...options,
  })

  /** The answer to a request whose body is begun and goes no further. */
  async function begin(target: string, headers: Record<string, string>, begun = '{"name":', method = 'POST') {
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => socket.destroy())
    const lines = Object.entries({ host: 'here', 'content-type': 'application/json', ...headers })
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.write(`${method} ${target} HTTP/1.1\r\n${head}\r\n${begun}`)
    let text = ''
    while (!/\r\n\r\n[^]*\}/.test(text)) text += String(((await once(socket, 'data')) as [Buffer])[0])
    const [head1 = '', body = ''] = text.split('\r\n\r\n')
    return {
      status: Number(head1.split(' ')[1]),
      head: head1.toLowerCase(),
      type: (JSON.parse(body) as { type?: string }).type,
    }
  }
  return { begin, own, other }
}

test('the key is asked for before the body', async (t) => {
  const { begin, own, other } = await openListener(t)
  const workers = `/v1/accounts/${own.id}/workers`
  for (const [name, length] of [
    ['with a length', { 'content-length': '900000' }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
    ['after 100 Continue', { 'content-length': '900000', expect: '100-continue' }],
  ] as const)
    await t.test(name, async (t) => {
      const begun = 'transfer-encoding' in length ? '8\r\n{"name":\r\n' : ''
      const unknown = await begin(workers, length, begun)
      t.match(unknown, { status: 401, type: 'UNAUTHORIZED' })
      t.match(unknown.head, 'connection: close', 'nobody waits for the rest')
      t.match(await begin(workers, { ...length, 'x-api-key': 'vk_nobody' }, begun), { status: 401 })
      const key = { 'x-api-key': own.key }
      t.match(await begin(`/v1/accounts/${other.id}/workers`, { ...length, ...key }, begun), { status: 404 })
      t.match(await begin('/v1/nowhere', { ...length, ...key }, begun), { status: 404, type: 'NOT_FOUND' })
      t.match(await begin('/nowhere', length, begun), { status: 404, type: 'NOT_FOUND' })
      t.match(await begin(workers, { ...length, ...key }, begun, 'PUT'), { status: 405 })
      t.match(await begin(workers, { ...length, ...key, 'content-type': 'text/plain' }, begun), { status: 415 })
    })

  await t.test('and 429 is answered without it', async (t) => {
    const asked = () => begin(workers, { 'content-length': '900000', 'x-from': '192.0.2.9' })
    let answer = await asked()
    for (let count = 0; count < 20; count += 1) answer = await asked()
    t.match(answer, { status: 429, type: 'RATE_LIMITED' })
    t.match(answer.head, /\r\nretry-after: \d/)
  })
})

test('of those who may ask', async (t) => {
  const { begin, own } = await openListener(t, { maxBodyBytesInFlight: 512 * 1024 })
  const workers = `/v1/accounts/${own.id}/workers`
  const key = { 'x-api-key': own.key }

  await t.test('a body that grows too large is 413, however it comes', async (t) => {
    t.match(await begin(workers, { ...key, 'content-length': '99000000' }), { status: 413, type: 'PAYLOAD_TOO_LARGE' })
    const { begin: roomy, own: owner } = await openListener(t)
    const chunk = `${(64 * 1024).toString(16)}\r\n${'x'.repeat(64 * 1024)}\r\n`
    const chunked = { 'x-api-key': owner.key, 'transfer-encoding': 'chunked' }
    const answer = await roomy(`/v1/accounts/${owner.id}/workers`, chunked, chunk.repeat(17))
    t.match(answer, { status: 413, type: 'PAYLOAD_TOO_LARGE' })
  })

  await t.test('one for which there is no room is 503 with Retry-After', async (t) => {
    const answer = await begin(workers, { ...key, 'content-length': '900000' }, ' '.repeat(899_999))
    t.match(answer, { status: 503, type: 'SERVICE_UNAVAILABLE' })
    t.match(answer.head, /\r\nretry-after: \d/)
  })
})
