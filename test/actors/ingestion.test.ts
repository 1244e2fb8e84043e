/** docs/contract/rest.md "Documents": how documents become something to search, and that searches see them whole or as they were. */
import t, { test, type Test } from 'tap'
import { createIngestion } from '../../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import type { Reader } from '../../actors/documents/reader.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import type { Embedder } from '../../model/knowledge.ts'
import { changeDocument, deleteDocument } from '../../store/documents.ts'
import { deleteWorker } from '../../store/delete-worker.ts'
import { createKnowledge } from '../../store/knowledge.ts'
import { migrate } from '../../store/migrate.ts'
import { releaseClaims } from '../../store/nodes.ts'
import { changeWorker, createWorker } from '../../store/workers.ts'
import { createInlineReader } from '../fake/inline-reader.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { docxOf, ownBytes, pdfOf, wordXml } from '../scenes/document-files.ts'
import { openKnowledge } from '../scenes/ingestion.ts'
import { newId } from '../scenes/tenant.ts'

const database = openTestDatabase(t)
const open = async (t: Test, options: Parameters<typeof openKnowledge>[2] = {}) =>
  openKnowledge(t, (await database).sql, options)

test('a document is queued, completed once it has been read, and only then found', async (t) => {
  const { write, find, search, ingest } = await open(t)
  const { id, status } = await write('We are open from nine to five.')
  t.equal(status, 'queued')
  t.same(await search('open'), [])
  await ingest()
  t.match(await find(id), { status: 'completed', failedReason: null })
  t.match(await search('When do you open?'), [
    { documentId: id, title: 'Handbook', text: 'We are open from nine to five.', score: 1 },
  ])
})

test('a document that changes is searched in its old form until the new one is complete', async (t) => {
  const { accountId, write, find, search, ingest, clock } = await open(t, {})
  const { id } = await write('# Hours\n\nWe are open from nine to five.', { type: 'mdoc' })
  await ingest()
  const change = { text: '# Hours\n\nWe are open around the clock.' }
  const changed = await changeDocument((await database).sql, { accountId, documentId: id, change, now: clock.now() })
  t.match(changed, { status: 'queued', content: change.text })
  t.match(await search('open'), [{ text: 'Hours\nWe are open from nine to five.' }])
  await ingest()
  t.equal((await find(id)).status, 'completed')
  t.match(await search('open'), [{ text: 'Hours\nWe are open around the clock.' }])
  t.equal((await search('five')).length, 0)
})

test('files of every format are read and found, and their text is told', async (t) => {
  const { upload, find, search, ingest } = await open(t, { inThread: true })
  const files = {
    'tea.txt': ownBytes(Buffer.from('Tea costs three euros.')),
    'coffee.md': ownBytes(Buffer.from('# Coffee\n\nCoffee costs four euros.')),
    'water.html': ownBytes(Buffer.from('<h2>Water</h2><p>Water is free.</p><script>x</script>')),
    'juice.docx': docxOf(wordXml([{ text: 'Juice', style: 'Heading1' }, { text: 'Juice costs five euros.' }])),
    'wine.pdf': pdfOf([
      [
        { text: 'Wine', size: 20 },
        { text: 'Wine costs nine euros.', gap: 6 },
      ],
    ]),
  }
  for (const [name, bytes] of Object.entries(files)) {
    const { id } = await upload(name, bytes)
    await ingest()
    const drink = name.split('.')[0] ?? ''
    t.match(await find(id), { status: 'completed', type: name.endsWith('md') ? 'mdoc' : name.split('.')[1] })
    const [best] = await search(drink)
    t.match(best, { documentId: id, title: name })
    t.match(best?.text, new RegExp(`^${drink}\\b.*(costs|is)`, 'is'))
    t.match((await find(id)).content, new RegExp(drink, 'i'))
  }
})

test('what cannot be read fails with its reason, and nothing of it is kept', async (t) => {
  const { sql, upload, write, find, ingest, search } = await open(t)
  const { id } = await upload('report.docx', pdfOf([[{ text: 'Hello.' }]]))
  const blank = await write('  \n ')
  await ingest()
  t.match(await find(id), { status: 'failed', failedReason: 'wrong_type', content: '' })
  t.match(await find(blank.id), { status: 'failed', failedReason: 'empty' })
  t.same(await search('hello'), [])
  t.same(await sql`select from document_files where document_id = ${id}`, [])
  t.same(await sql`select from document_jobs where document_id = ${id}`, [])
})

test('a document that is deleted, or changed, under its running job leaves nothing of what was read', async (t) => {
  const { sql, accountId, clock, log, write, find, search, ingest } = await open(t)
  let meanwhile = async (): Promise<void> => {}
  const pieces = [[{ heading: '', text: 'A first half.' }], [{ heading: '', text: 'A second half.' }], []]
  let at = 0
  const reader: Reader = {
    read: async () => ((at = 0), null),
    async next() {
      if (at === 1) await meanwhile()
      return { type: 'passages', passages: pieces[at++] ?? [], vectors: null }
    },
    close: async () => {},
  }
  const common = {
    sql,
    clock,
    log,
    nodeId: newId<'node'>(),
    newId,
    embedder: lexicalEmbedder,
    checkScript: openScriptCheck,
  }
  const slow = createIngestion({ ...common, reader })
  t.teardown(() => slow.close())

  const gone = await write('Going.')
  meanwhile = async () => void (await deleteDocument(sql, accountId, gone.id))
  await slow.idle()
  t.same(await sql`select from passages where document_id = ${gone.id}`, [])

  const changing = await write('Before.')
  let once = true
  meanwhile = async () => {
    if (!once) return
    once = false
    await changeDocument(sql, { accountId, documentId: changing.id, change: { text: 'Afterwards.' }, now: clock.now() })
    // Another process takes it at once.
    await ingest()
  }
  await slow.idle()
  t.match(await find(changing.id), { status: 'completed', content: 'Afterwards.' })
  t.match(await search('afterwards'), [{ text: 'Afterwards.' }])
  t.same(await search('half'), [])
  t.same(
    log.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('a process that dies in the middle leaves the old form, and another one begins anew', async (t) => {
  const { sql, accountId, clock, write, find, search, ingest } = await open(t)
  const { id } = await write('The old form.')
  await ingest()
  await changeDocument(sql, { accountId, documentId: id, change: { text: 'The new form.' }, now: clock.now() })
  // As a process leaves it: claimed, and some passages of a revision that nobody will name.
  const dead = newId<'node'>()
  await sql`update document_jobs set claim = 'x', claimed_by = ${dead}, claimed_until = ${clock.now() + 120_000}, attempts = 1 where document_id = ${id}`
  await sql`
    insert into passages (revision, place, account_id, document_id, dictionary, title, heading, text)
    values (nextval('document_revisions'), 0, ${accountId}, ${id}, 'english', 'Handbook', '', 'Half of a new form.')`
  await ingest()
  t.match(await search('form'), [{ text: 'The old form.' }], 'while its claim runs')
  await releaseClaims(sql, [dead])
  await ingest()
  t.equal((await find(id)).status, 'completed')
  t.match(await search('form'), [{ text: 'The new form.' }])
  t.equal((await search('form')).length, 1)
  t.same(await sql`select text from passages where document_id = ${id}`, [{ text: 'The new form.' }])
})

test('a worker that is deleted under a running job takes nothing with it but the link', async (t) => {
  const { sql, accountId, workerId, clock, write, find, ingest, knowledge } = await open(t)
  const { id } = await write('We are open.')
  await deleteWorker(sql, { accountId, workerId, now: clock.now() })
  await ingest()
  t.match(await find(id), { status: 'completed', workerIds: [] })
  t.same(await knowledge.search({ accountId, workerId, query: 'open', limit: 1 }), [])
})

test('a worker finds its own documents that are active and no scripts, at the moment that they are', async (t) => {
  const { sql, accountId, clock, write, ingest, search, knowledge } = await open(t)
  const colleague = await createWorker(sql, { accountId, name: 'Bob', language: 'en', newId, now: clock.now() })
  const { id } = await write('Refunds take ninety days.')
  await write('Refunds are for Bob.', { workerIds: [colleague.id] })
  await write('say Refunds in a script.', { tagKeys: ['inbound_call_script'] })
  const other = await openKnowledge(t, sql)
  await other.write('Refunds of strangers.')
  await ingest()
  const texts = async () => (await search('refunds')).map(({ text }) => text)
  const change = (change: Parameters<typeof changeDocument>[1]['change']) =>
    changeDocument(sql, { accountId, documentId: id, change, now: clock.now() })
  t.same(await texts(), ['Refunds take ninety days.'])
  await change({ isActive: false })
  t.same(await texts(), [])
  await change({ isActive: true })
  t.same(await texts(), ['Refunds take ninety days.'])
  await change({ tagKeys: ['outbound_call_script'] })
  t.same(await texts(), [])
  t.match(await change({ tagKeys: [] }), { status: 'queued' })
  await ingest()
  t.same(await texts(), ['Refunds take ninety days.'])
  await change({ workerIds: [colleague.id] })
  t.same(await texts(), [])
  const ofBob = { accountId, workerId: colleague.id, query: 'refunds', limit: 5 }
  t.equal((await knowledge.search(ofBob)).length, 2)
})

test('processes see each other’s changes in their next search', async (t) => {
  const { sql, accountId, workerId, clock, write, ingest, search, log } = await open(t)
  const elsewhere = createKnowledge({ sql, embedder: lexicalEmbedder, maxBytes: 1_000_000, log })
  const there = async (query: string) =>
    (await elsewhere.search({ accountId, workerId, query, limit: 5 })).map(({ text }) => text)
  const { id } = await write('Bookkeepingsoftware.', { title: 'A' })
  await ingest()
  // By its vector, in memory: no word is the same.
  t.same(await there('bookkeepingsoft'), ['Bookkeepingsoftware.'])
  await changeDocument(sql, { accountId, documentId: id, change: { text: 'Openingceremonies.' }, now: clock.now() })
  await ingest()
  t.same(await there('bookkeepingsoft'), [])
  t.same(await there('openingceremon'), ['Openingceremonies.'])
  t.equal((await search('openingceremon')).length, 1)
  await deleteDocument(sql, accountId, id)
  t.same(await there('openingceremon'), [])
})

test('words are found in any of their forms, in the language of the worker, and by parts of them', async (t) => {
  const { sql, accountId, workerId, clock, write, ingest, search } = await open(t, { language: 'de-AT' })
  await write('Die Häuser sind verkauft.')
  await write('Ganz etwas anderes steht hier.')
  await ingest()
  t.match(await search('Verkäufe von Häusern'), [{ text: 'Die Häuser sind verkauft.' }])
  t.equal((await search('Verkäufe von Häusern')).length, 1)
  t.same(await search('die sind der'), [], 'words without a meaning')
  t.same(await search("'; drop table documents; -- & | ! <-> :*"), [])
  t.same(await search('...'), [])
  // A change of the language is a change of how they are read.
  await write('Refunds were issued.')
  await changeWorker(sql, { accountId, workerId, change: { language: 'en-GB' }, now: clock.now() })
  await ingest()
  t.match(await search('issues'), [{ text: 'Refunds were issued.' }])
  t.same(await sql`select distinct dictionary from documents where account_id = ${accountId}`, [
    { dictionary: 'english' },
  ])
})

test('a passage that is right by words and by vector comes before one that is right by one of them', async (t) => {
  const { write, ingest, search } = await open(t)
  const fill = Array.from({ length: 55 }, (_, at) => `${'qwertzuiop'.slice(at % 7)}${at * 7919}`).join(' ')
  await write(`${fill}. The parking garage is mentioned at its end.`, { title: 'Long' })
  await write('Parking garage: two euros an hour.', { title: 'Short' })
  await write('Nothing at all.', { title: 'None' })
  await ingest()
  const found = await search('parking garage')
  t.same(
    found.map(({ title }) => title),
    ['Short', 'Long'],
  )
  t.ok((found[0]?.score ?? 0) > 0.95, 'near the top of both lists')
  t.ok((found[1]?.score ?? 1) < 0.6)
})

test('embeddings that cannot be had are tried again, and searches go on by words', async (t) => {
  let isThere = false
  const embedder: Embedder = {
    name: 'test-1',
    floor: 0.2,
    isLocal: false,
    embed: async (texts) => {
      if (!isThere) throw new Error('away')
      return lexicalEmbedder.embed(texts)
    },
  }
  const { clock, write, find, ingest, search, log } = await open(t, { embedder })
  const { id } = await write('We are open from nine to five.')
  await ingest()
  t.equal((await find(id)).status, 'queued')
  t.match(log.lines.at(-1), { level: 'warn', fields: { attempts: 1 } })
  isThere = true
  clock.advance(1_000)
  await ingest()
  t.equal((await find(id)).status, 'completed')
  isThere = false
  t.match(await search('open'), [{ documentId: id, score: 0.5 }])
  const lost = await write('Another one.')
  for (let tries = 0; tries < 12; tries += 1) {
    await ingest()
    clock.advance(6 * 3_600_000)
  }
  t.match(await find(lost.id), { status: 'failed', failedReason: 'embeddings_unavailable' })
})

test('documents with vectors of another embedder get new ones, and stay in use meanwhile', async (t) => {
  const { sql, clock, log, write, find, ingest, search } = await open(t)
  const { id } = await write('We are open from nine to five.')
  await ingest()
  const embedder = { ...lexicalEmbedder, name: 'another-1' }
  const common = { sql, clock, log, nodeId: newId<'node'>(), newId, checkScript: openScriptCheck }
  const later = createIngestion({ ...common, embedder, reader: createInlineReader() })
  t.teardown(() => later.close())
  await later.start()
  t.equal((await find(id)).status, 'completed')
  t.equal((await search('open')).length, 1)
  await later.idle()
  t.same(await sql`select embedder from documents where id = ${id}`, [{ embedder: 'another-1' }])
})

test('one account with many documents holds up no other', async (t) => {
  const { sql, write, clock, log, ...own } = await open(t)
  for (let count = 0; count < 5; count += 1) await write(`Document ${count}.`)
  const other = await openKnowledge(t, sql)
  const late = await other.write('The only one.')
  const order: string[] = []
  const reader: Reader = {
    read: async (_, title) => (order.push(title), null),
    next: async () => ({ type: 'passages', passages: [], vectors: null }),
    close: async () => {},
  }
  await sql`update documents set title = 'Other' where id = ${late.id}`
  const nodeId = newId<'node'>()
  const rounds = createIngestion({
    sql,
    clock,
    log,
    nodeId,
    newId,
    embedder: lexicalEmbedder,
    checkScript: openScriptCheck,
    reader,
  })
  t.teardown(() => rounds.close())
  await rounds.idle()
  t.ok(order.indexOf('Other') <= 1, order.join())
  t.equal(order.length, 6)
  t.ok(own.accountId)
})

test('a call script needs no reading; one that does not compile is saved, and off', async (t) => {
  const { sql, accountId, clock, write, upload, find, ingest } = await open(t)
  const checkScript = await openScriptCheck()
  const tagKeys = ['inbound_call_script']
  t.match(await write('say Hello.', { tagKeys }), { status: 'completed', isActive: true })
  const wrong = await write('say Hello.\nask (): What?', { tagKeys, isActive: true })
  t.match(wrong, { status: 'completed', isActive: false })
  const change = (change: Parameters<typeof changeDocument>[1]['change']) =>
    changeDocument(sql, { accountId, documentId: wrong.id, change, checkScript, now: clock.now() })
  t.match(await change({ isActive: true }), { isActive: true }, 'for hosted engines, on somebody’s word')
  t.match(await change({ text: 'ask (): What?', isActive: true }), { isActive: false })
  t.match(await change({ text: 'say Goodbye.', isActive: true }), { isActive: true, status: 'completed' })
  const file = await upload('script.txt', ownBytes(Buffer.from('ask (): What?')), { tagKeys })
  const good = await upload('good.txt', ownBytes(Buffer.from('say Hello.')), { tagKeys })
  t.equal(file.status, 'queued')
  await ingest()
  t.match(await find(file.id), { status: 'completed', isActive: false, content: 'ask (): What?' })
  t.match(await find(good.id), { status: 'completed', isActive: true, content: 'say Hello.' })
})

test('documents of before are found right after the migration, and then read as all are', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId, workerId, clock, find, ingest, search } = await openKnowledge(t, sql)
  await sql`drop table passages, document_jobs, document_files`
  await sql`drop function passage_lexemes`
  await sql`
    alter table documents drop column revision, drop column passage_count, drop column dictionary, drop column embedder, drop column failed_reason`
  await sql`drop sequence document_revisions`
  await sql`delete from migrations where name like '%passages%'`
  const long = Array.from({ length: 500 }, (_, at) => `word${at}`).join(' ')
  const id = newId<'document'>()
  const row = { accountId, fileName: 'old.txt', status: 'completed' }
  await sql`insert into documents ${sql({ ...row, id, title: 'Old', content: `Opening hours\n\nWe were opened.\n\n${long}` })}`
  await sql`insert into documents ${sql({ ...row, id: newId(), title: 'Script', content: 'say Open.', tagKeys: ['inbound_call_script'] })}`
  await sql`insert into document_workers (account_id, document_id, worker_id) select account_id, id, ${workerId} from documents`
  t.match(await migrate(sql), [/passages/])
  const expected = [{ documentId: id, title: 'Old', text: /We were opened/ }]
  t.match(await search('open'), expected)
  t.equal((await search('open')).length, 1)
  t.equal((await search('word499')).length, 1)
  await sql`update document_jobs set run_at = ${clock.now()}`
  await ingest()
  t.match(await find(id), { status: 'completed' })
  t.match(await search('open'), expected)
  t.same(await sql`select embedder from documents where id = ${id}`, [{ embedder: lexicalEmbedder.name }])
  t.same(await sql`select from document_jobs`, [])
})
