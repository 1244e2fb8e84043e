/** The embeddings endpoint of OpenAI, as its servers answer it and as they should not. */
import { createServer, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { createEndpointEmbedder } from '../../actors/documents/endpoint-embedder.ts'
import { readConfig } from '../../app/config.ts'

type Asked = {
  readonly path: string
  readonly authorization: string | undefined
  readonly json: { input: string[]; [key: string]: unknown }
}
type Answer = { readonly status?: number; readonly body: unknown } | 'hang'

async function openServer(t: Test, answer: (asked: Asked) => Answer) {
  const asked: Asked[] = []
  const server = createServer((incoming, outgoing) => {
    void bodyOf(incoming).then((json) => {
      const request = { path: incoming.url ?? '', authorization: incoming.headers.authorization, json }
      asked.push(request)
      const given = answer(request)
      if (given === 'hang') return
      outgoing.writeHead(given.status ?? 200, { 'content-type': 'application/json' })
      outgoing.end(typeof given.body === 'string' ? given.body : JSON.stringify(given.body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked }
}

async function bodyOf(incoming: IncomingMessage): Promise<Asked['json']> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString()) as Asked['json']
}

const embeddings = ({ json }: Asked, of = (text: string) => [text.length, 1, 0]) => ({
  body: {
    object: 'list',
    data: json.input.map((text, index) => ({ object: 'embedding', index, embedding: of(text) })).toReversed(),
  },
})

test('texts are sent in pieces, and their vectors come back in their order', async (t) => {
  const { url, asked } = await openServer(t, (request) => embeddings(request))
  const embedder = createEndpointEmbedder({ url, model: 'm', apiKey: 'secret', dimensions: null })
  const texts = Array.from({ length: 150 }, (_, at) => 'x'.repeat(at + 1))
  const vectors = await embedder.embed(texts)
  t.equal(vectors.length, 150)
  t.same([...(vectors[0] ?? [])], [127, 127, 0])
  t.same([...(vectors[126] ?? [])], [127, 1, 0], 'whatever order the server answers in')
  t.match(asked[0], { path: '/v1/embeddings', authorization: 'Bearer secret', json: { model: 'm' } })
  t.notOk(asked.some(({ json }) => 'dimensions' in json))
  t.ok(asked.every(({ json }) => json.input.length <= 64))
  t.equal(embedder.isLocal, false)
})

test('as many dimensions as are wanted, and no others', async (t) => {
  const { url, asked } = await openServer(t, (request) => embeddings(request, () => [1, 2]))
  const two = createEndpointEmbedder({ url, model: 'm', apiKey: null, dimensions: 2 })
  t.equal((await two.embed(['a']))[0]?.length, 2)
  t.match(asked[0], { authorization: undefined, json: { dimensions: 2 } })
  const three = createEndpointEmbedder({ url, model: 'm', apiKey: null, dimensions: 3 })
  await t.rejects(three.embed(['a']), /other vectors/)
  t.not(two.name, three.name, 'vectors of one are not compared with those of the other')
})

test('a server that answers garbage, fails, or is gone is an error, and never a wrong vector', async (t) => {
  const good = { index: 0, embedding: [1, 2] }
  for (const body of [
    'no json',
    {},
    { data: [] },
    { data: [{ index: 0, embedding: [] }] },
    { data: [{ index: 0, embedding: ['1'] }] },
    { data: [good, good] },
    { data: [{ index: 7, embedding: [1] }] },
    { data: 'x' },
  ]) {
    const { url } = await openServer(t, () => ({ body }))
    const embedder = createEndpointEmbedder({ url, model: 'm', apiKey: null, dimensions: null })
    await t.rejects(embedder.embed(['a']), JSON.stringify(body))
  }
  const { url } = await openServer(t, () => ({ status: 429, body: { error: {} } }))
  await t.rejects(createEndpointEmbedder({ url, model: 'm', apiKey: null, dimensions: null }).embed(['a']), /429/)
  const nobody = { url: 'http://127.0.0.1:9/v1', model: 'm', apiKey: null, dimensions: null }
  await t.rejects(createEndpointEmbedder(nobody).embed(['a']))
})

test('who gives up waits for no server that hangs', async (t) => {
  const { url } = await openServer(t, () => 'hang')
  const embedder = createEndpointEmbedder({ url, model: 'm', apiKey: null, dimensions: null })
  const giving = new AbortController()
  const asked = embedder.embed(['a'], giving.signal)
  giving.abort()
  await t.rejects(asked)
})

test('the settings of the endpoint go together', (t) => {
  t.equal(readConfig({}).embeddings, null)
  t.match(readConfig({ EMBEDDINGS_URL: 'http://localhost:1/v1/', EMBEDDINGS_MODEL: 'm' }).embeddings, {
    url: 'http://localhost:1/v1',
    model: 'm',
    apiKey: null,
    dimensions: null,
  })
  t.throws(() => readConfig({ EMBEDDINGS_MODEL: 'm' }), /EMBEDDINGS_URL/)
  t.throws(() => readConfig({ EMBEDDINGS_URL: 'http://localhost:1' }), /EMBEDDINGS_MODEL/)
  t.equal(readConfig({ KNOWLEDGE_MEMORY_MB: '1' }).knowledgeMemory, 1_048_576)
  t.end()
})
