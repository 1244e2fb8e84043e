/** docs/contract/rest.md "Documents": texts and files over REST, their way to being searched, and the search. */
import { test, type Test } from 'tap'
import { createIngestion } from '../../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { createInlineReader } from '../fake/inline-reader.ts'
import { docxOf, formOf, ownBytes, pdfOf, wordXml } from '../scenes/document-files.ts'
import { openSeededApi } from '../scenes/seeded-api.ts'

async function openDocuments(t: Test) {
  const seeded = await openSeededApi(t, { checkScript: await openScriptCheck() })
  const { ask, own, other, deps, sql } = seeded
  const { clock, log, newId } = deps
  const common = { sql, clock, log, newId, nodeId: newId<'node'>() }
  const reader = createInlineReader()
  const ingestion = createIngestion({ ...common, embedder: lexicalEmbedder, checkScript: openScriptCheck, reader })
  t.teardown(() => ingestion.close())
  const at = (path: string, of = own) => `/v1/accounts/${of.id}/${path}`
  return {
    ...seeded,
    ingest: () => ingestion.idle(),
    get: (path: string) => ask(at(path)),
    post: (path: string, json: unknown) => ask(at(path), { method: 'POST', json }),
    patch: (path: string, json: unknown) => ask(at(path), { method: 'PATCH', json }),
    upload: (name: string, bytes: Uint8Array, fields: readonly (readonly [string, string])[] = []) =>
      ask(at('documents'), { method: 'POST', ...formOf(fields, { name, bytes }) }),
    form: (form: ReturnType<typeof formOf>, of = own) =>
      ask(at('documents', of), { method: 'POST', key: own.key, ...form }),
    other,
  }
}

const refusalIn = ({ status, json }: { status: number; json: { type?: string; issues?: { path: string }[] } }) => [
  status,
  json.type,
  ...(json.issues ?? []).map(({ path }) => path),
]

test('a text is queued, completed when it has been read, and then found', async (t) => {
  const { own, post, get, patch, ingest } = await openDocuments(t)
  const text = '# Hours\n\nWe are open from nine to five.'
  const { json } = await post('documents', { title: 'Shop', text, type: 'mdoc', workerIds: [own.worker.id] })
  t.match(json, { status: 'queued', type: 'mdoc', fileName: 'shop.md', text })
  const search = async (query: string) =>
    (await post(`workers/${own.worker.id}/knowledge/search`, { query })).json.passages
  t.same(await search('open'), [])
  await ingest()
  t.match((await get(`documents/${json.id}`)).json, { status: 'completed', text })
  t.same(await search('When do you open?'), [
    { documentId: json.id, title: 'Shop', text: 'Hours\nWe are open from nine to five.', score: 1 },
  ])
  t.match((await patch(`documents/${json.id}`, { text: 'We are closed.' })).json, { status: 'queued' })
  t.equal((await search('open')).length, 1, 'in its old form')
  await ingest()
  t.match(await search('closed'), [{ text: 'We are closed.' }])
  t.same(await search('five'), [])
  const tool = await post(`workers/${own.worker.id}/mcp/tools/call`, {
    provider: 'knowledge_base',
    toolName: 'search',
    arguments: { query: 'closed' },
  })
  t.same(tool.json.result.data.passages, await search('closed'), 'the tool finds what the search finds')
})

test('a file is uploaded with what is said of it', async (t) => {
  const { own, get, upload, ingest } = await openDocuments(t)
  const docx = docxOf(wordXml([{ text: 'Hours', style: 'Heading1' }, { text: 'From nine to five.' }]))
  const { status, json } = await upload('Opening hours.docx', docx, [
    ['tagKeys', 'faq'],
    ['tagKeys', 'hours'],
    ['workerIds', own.worker.id],
    ['isActive', 'true'],
  ])
  t.equal(status, 200)
  t.match(json, {
    title: 'Opening hours',
    fileName: 'Opening hours.docx',
    type: 'docx',
    status: 'queued',
    tagKeys: ['faq', 'hours'],
    workerIds: [own.worker.id],
  })
  t.notOk('text' in json, 'there is none yet')
  t.notOk('text' in (await upload('a.txt', ownBytes(Buffer.from('Hello.')))).json)
  await ingest()
  t.match((await get(`documents/${json.id}`)).json, { status: 'completed', text: '# Hours\n\nFrom nine to five.' })
  const pdf = await upload('C:\\files\\größe.PDF', pdfOf([[{ text: 'Large.' }]]), [['title', 'Sizes']])
  t.match(pdf.json, { title: 'Sizes', fileName: 'größe.PDF', type: 'pdf' })
})

test('a file that cannot be read is failed, with a reason', async (t) => {
  const { get, upload, patch, ingest } = await openDocuments(t)
  const { json } = await upload('report.docx', pdfOf([[{ text: 'Hello.' }]]))
  await ingest()
  const { json: told } = await get(`documents/${json.id}`)
  t.match(told, { status: 'failed', failedReason: 'wrong_type' })
  t.notOk('text' in told)
  t.same(refusalIn(await patch(`documents/${json.id}`, { text: 'x' })), [400, 'VALIDATION_FAILED', 'text'])
})

test('forms that are none, and files that cannot be taken, are refused', async (t) => {
  const { own, other, form, upload, ask, sql } = await openDocuments(t)
  const text = ownBytes(Buffer.from('Hello.'))
  const many = { name: 'big.txt', bytes: new Uint8Array(20 * 1024 * 1024 + 1).fill(0x61) }
  const whole = formOf([], { name: 'a.txt', bytes: text })
  const unended = { ...whole, body: whole.body.slice(0, -10) }
  const invalid = (path: string) => [400, 'VALIDATION_FAILED', path]
  for (const [answer, refusal] of [
    [await upload('picture.png', text), invalid('file')],
    [await upload('noending', text), invalid('file')],
    [await form(formOf([['title', 'x']], null)), invalid('file')],
    [await form(unended), invalid('')],
    [await form({ ...whole, headers: { 'content-type': 'multipart/form-data' } }), invalid('')],
    [await form({ ...whole, body: new Uint8Array(0) }), invalid('')],
    [await form(formOf([], many)), [413, 'PAYLOAD_TOO_LARGE']],
    [await upload('a.txt', text, [['status', 'completed']]), invalid('status')],
    [await upload('a.txt', text, [['isActive', 'perhaps']]), invalid('isActive')],
    [await upload('a.txt', text, [['tagKeys', 'Not A Key']]), invalid('tagKeys.0')],
    [await upload('a.txt', text, [['tagKeys', 'a,'.repeat(1_001)]]), invalid('tagKeys')],
    [await upload('a.txt', text, [['workerIds', `${own.worker.id},${other.worker.id}`]]), invalid('workerIds.1')],
    [await upload('a.txt', text, [['title', 'a\0b']]), invalid('title')],
    [await form(whole, other), [404, 'NOT_FOUND']],
    [
      await ask(`/v1/accounts/${own.id}/documents`, {
        method: 'POST',
        json: { title: 'x', text: 'x'.repeat(1_100_000) },
      }),
      [413, 'PAYLOAD_TOO_LARGE'],
    ],
  ] as const)
    t.same(refusalIn(answer), refusal)
  t.same(await sql`select from documents`, [])
})

test('a script that does not compile is saved and off, with the lines', async (t) => {
  const { own, post, get, patch } = await openDocuments(t)
  const script = { title: 'Survey', tagKeys: ['outbound_call_script'], workerIds: [own.worker.id] }
  const { status, json } = await post('documents', { ...script, text: 'say Hello.\nask (): What?', isActive: true })
  t.equal(status, 200)
  t.match(json, { isActive: false, status: 'completed', scriptErrors: [{ line: 2 }] })
  const scripts = async () => (await get(`workers/${own.worker.id}/documents/outbound-call-scripts`)).json
  t.same(await scripts(), [])
  t.match((await patch(`documents/${json.id}`, { isActive: true })).json, {
    isActive: true,
    scriptErrors: [{ line: 2 }],
  })
  t.equal((await scripts()).length, 1, 'hosted engines read anything')
})

test('what no search is, is refused; a worker of another account is none', async (t) => {
  const { own, other, post } = await openDocuments(t)
  const at = `workers/${own.worker.id}/knowledge/search`
  for (const [path, body] of [
    ['query', {}],
    ['query', { query: '' }],
    ['query', { query: 'x'.repeat(1_001) }],
    ['limit', { query: 'x', limit: 21 }],
    ['query', { query: 'a\0b' }],
  ] as const)
    t.same(refusalIn(await post(at, body)), [400, 'VALIDATION_FAILED', path])
  t.same(refusalIn(await post(`workers/${other.worker.id}/knowledge/search`, { query: 'x' })), [404, 'NOT_FOUND'])
  t.same((await post(at, { query: 'anything' })).json, { passages: [] })
})

test('a list is told whole, or by links from page to page (RFC 8288) that keep its filters and lose nothing that is deleted meanwhile', async (t) => {
  const { ask, own, post } = await openDocuments(t)
  const path = `/v1/accounts/${own.id}/documents`
  const titles: string[] = []
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    const { json } = await post('documents', { title: `Part ${n}`, text: 'Text.', tagKeys: ['part'] })
    titles.push(json.title)
    ids.push(json.id)
  }
  await post('documents', { title: 'Another', text: 'Text.' })
  const whole = await ask(`${path}?tagKey=part`)
  t.same([whole.json.length, whole.headers.get('link')], [5, null])
  const seen: string[] = []
  let query: string | null = '?tagKey=part&limit=2'
  for (let pages = 0; query !== null && pages < 9; pages++) {
    const { json, headers } = await ask(`${path}${query}`)
    seen.push(...json.map(({ title }: { title: string }) => title))
    query = /^<(\?[^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1] ?? null
    if (pages === 0) await ask(`${path}/${ids[1]}`, { method: 'DELETE' })
  }
  t.same(seen, titles)
  t.same(refusalIn(await ask(`${path}?limit=101`)), [400, 'VALIDATION_FAILED', 'limit'])
  t.same(refusalIn(await ask(`${path}?limit=2&cursor=third`)), [400, 'VALIDATION_FAILED', 'cursor'])
})
