/** docs/contract/rest.md "Recordings"; RFC 9110 sections 13.1.5 and 14: downloading a recording with a signed link. */
import { test } from 'tap'
import { createApi } from '../../api/api.ts'
import { byteRangeOf } from '../../api/byte-range.ts'
import { recordingLinkOf } from '../../api/recording-link.ts'
import { newId, openSeededApi } from '../scenes/seeded-api.ts'

const bytes = Uint8Array.from({ length: 200_000 }, (_, index) => (index * 7 + (index >> 8)) % 251)
const latin = (from: number, to: number) => Buffer.from(bytes.subarray(from, to + 1)).toString('hex')

test('the download of a recording', async (t) => {
  const { own, other, deps, sql, recordings, hands, ask } = await openSeededApi(t)
  const key = `${own.id}/${own.callId}.wav`
  await sql`update calls set recording_key = ${key} where id = ${own.callId}`
  const writer = recordings.create(key)
  writer.append(bytes)
  await writer.close()
  const { url } = (await ask(`/v1/accounts/${own.id}/phone-calls/${own.callId}/audio/url`)).json as { url: string }
  const fetch = createApi(deps)
  const get = async (headers: Record<string, string> = {}, target = url, method = 'GET') => {
    const response = await fetch(new Request(target, { method, headers }), { remoteAddress: '192.0.2.7' })
    const body = Buffer.from(await response.arrayBuffer())
    return {
      status: response.status,
      header: (name: string) => response.headers.get(name),
      body,
      hex: body.toString('hex'),
    }
  }

  await t.test('needs the link and no key, and gives the whole file', async (t) => {
    const answer = await get()
    t.equal(answer.status, 200)
    t.ok(answer.hex === latin(0, bytes.length - 1), 'the very bytes')
    t.equal(answer.header('content-type'), 'audio/wav')
    t.equal(answer.header('content-length'), '200000')
    t.equal(answer.header('accept-ranges'), 'bytes')
    t.equal(answer.header('content-disposition'), `attachment; filename="${own.callId}.wav"`)
    t.equal(answer.header('cache-control'), 'no-store')
  })

  await t.test('a range is 206 with exactly its bytes', async (t) => {
    const ranges: [string, number, number][] = [
      ['bytes=0-0', 0, 0],
      ['bytes=100-199', 100, 199],
      ['bytes=65530-131080', 65_530, 131_080],
      ['bytes=199990-', 199_990, 199_999],
      ['bytes=-5', 199_995, 199_999],
      ['bytes=199999-900000', 199_999, 199_999],
      ['bytes=-900000', 0, 199_999],
    ]
    for (const [range, from, to] of ranges) {
      const answer = await get({ range })
      t.equal(answer.status, 206, range)
      t.equal(answer.header('content-range'), `bytes ${from}-${to}/200000`)
      t.equal(answer.header('content-length'), String(to - from + 1))
      t.ok(answer.hex === latin(from, to), 'the very bytes')
    }
  })

  await t.test('a range behind the end is 416 and names the size', async (t) => {
    for (const range of ['bytes=200000-', 'bytes=900000-900001', 'bytes=-0']) {
      const answer = await get({ range })
      t.same([answer.status, answer.header('content-range')], [416, 'bytes */200000'], range)
      t.match(JSON.parse(answer.body.toString()), { type: 'RANGE_NOT_SATISFIABLE', statusCode: 416 })
    }
  })

  await t.test('what is no single range of bytes is ignored', async (t) => {
    for (const range of ['bytes=5-2', 'bytes=-', 'bytes=a-b', 'items=0-1', 'bytes=0-1,5-6', 'bytes 0-1'])
      t.equal((await get({ range })).status, 200, range)
  })

  await t.test('If-Range continues the same file only', async (t) => {
    const etag = (await get()).header('etag') ?? ''
    t.equal((await get({ range: 'bytes=0-1', 'if-range': etag })).status, 206)
    t.equal((await get({ range: 'bytes=0-1', 'if-range': '"another"' })).status, 200)
    t.equal((await get({ range: 'bytes=0-1', 'if-range': `W/${etag}` })).status, 200)
  })

  await t.test('who has it already is told so, whatever part is asked for', async (t) => {
    const etag = (await get()).header('etag') ?? ''
    for (const method of ['GET', 'HEAD'])
      for (const asked of [etag, `W/${etag}`, `"another", ${etag}`, '*']) {
        const answer = await get({ range: 'bytes=0-1', 'if-none-match': asked }, url, method)
        t.same([answer.status, answer.header('etag'), answer.body.length], [304, etag, 0], `${method} ${asked}`)
      }
    t.equal((await get({ 'if-none-match': '"another"' })).status, 200)
  })

  await t.test('a client that goes on with another recording is told so before anything else', async (t) => {
    const etag = (await get()).header('etag') ?? ''
    for (const wanted of [etag, '*', `"another", ${etag}`])
      t.equal((await get({ range: 'bytes=0-1', 'if-match': wanted })).status, 206, wanted)
    for (const wanted of ['"another"', `W/${etag}`, ''])
      for (const method of ['GET', 'HEAD']) {
        const answer = await get({ range: 'bytes=900000-', 'if-none-match': '*', 'if-match': wanted }, url, method)
        t.equal(answer.status, 412, `${method} ${wanted}`)
        t.equal(answer.header('content-range'), null)
      }
    t.match(JSON.parse((await get({ 'if-match': '"another"' })).body.toString()), { type: 'PRECONDITION_FAILED' })
  })

  await t.test('HEAD tells the size and sends nothing', async (t) => {
    for (const headers of [{}, { range: 'bytes=0-1' }]) {
      const answer = await get(headers, url, 'HEAD')
      t.same([answer.status, answer.header('content-length'), answer.body.length], [200, '200000', 0])
    }
  })

  await t.test('a link that was altered in any part is refused', async (t) => {
    const altered = (change: (link: URL) => void) => {
      const link = new URL(url)
      change(link)
      return link.href
    }
    const set = (name: string, value: string) => altered((link) => link.searchParams.set(name, value))
    const signature = new URL(url).searchParams.get('signature') ?? ''
    const links = [
      altered((link) => (link.search = '')),
      altered((link) => link.searchParams.delete('signature')),
      set('expires', String(hands.clock.now() + 99 * 60_000)),
      set('expires', 'Infinity'),
      set('expires', ''),
      set('signature', ''),
      set('signature', signature.slice(0, -1)),
      set('signature', `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`),
      altered((link) => (link.pathname = `/v1/recordings/${other.id}/${own.callId}.wav`)),
      altered((link) => (link.pathname = `/v1/recordings/${own.id}/${newId()}.wav`)),
      altered((link) => (link.pathname = `/v1/recordings/${own.id}/${own.callId}.opus`)),
      altered((link) => (link.pathname = `/v1/recordings/${own.id}/..%2F..%2Fapp.key`)),
    ]
    for (const link of links) t.equal((await get({}, link)).status, 401, link)
    t.equal(
      (
        await get(
          { 'x-api-key': own.key },
          altered((link) => (link.search = '')),
        )
      ).status,
      401,
      'a key is no signature',
    )
  })

  await t.test('a link to what is gone is 404', async (t) => {
    const gone = newId<'call'>()
    const named = { accountId: own.id, callId: gone }
    const link = recordingLinkOf(deps.recordingUrlKey, named, hands.clock.now() + 1_000)
    t.equal((await get({}, `http://calls.example${link}`)).status, 404)
  })

  await t.test('the link is good for 15 minutes', async (t) => {
    hands.turn(15 * 60_000 - 1)
    t.equal((await get()).status, 200)
    hands.turn(1)
    const late = await get()
    t.equal(late.status, 401)
    t.match(JSON.parse(late.body.toString()), { type: 'UNAUTHORIZED' })
  })
})

test('a range that is given is always inside of the file', async (t) => {
  const numbers = ['', '0', '1', '2', '9', '10', '11', '99999999999999999999', '1'.repeat(400)]
  for (const size of [0, 1, 2, 10])
    for (const first of numbers)
      for (const last of numbers) {
        const range = byteRangeOf(`bytes=${first}-${last}`, size)
        if (range === null || range === 'unsatisfiable') continue
        const inside = range.from >= 0 && range.from <= range.to && range.to < size
        if (!inside || !Number.isInteger(range.from + range.to))
          t.fail(`${first}-${last} of ${size}: ${JSON.stringify(range)}`)
      }
  t.same(byteRangeOf('bytes=1-', 10), { from: 1, to: 9 })
})
