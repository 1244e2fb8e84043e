/** docs/contract/rest.md "Documents": rows of documents, their tags and links, and what their change means for scripts. */
import { test } from 'tap'
import { fileNameOf, type DocumentRequest } from '../../model/document.ts'
import {
  changeDocument,
  createDocument,
  deleteDocument,
  findCallScript,
  findDocument,
  listDocuments,
  writeDocument,
} from '../../store/documents.ts'
import { createWorker } from '../../store/workers.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const start = Date.UTC(2026, 0, 1)

test('documents', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId, workerId } = await createTenant(sql)
  const other = await createTenant(sql, { slug: 'other' })
  const second = await createWorker(sql, { accountId, name: 'Second', language: 'en', newId, now: start })
  const write = (request: Partial<DocumentRequest>, now = start) =>
    writeDocument(sql, { accountId, request: { title: 'Opening hours', text: 'nine', ...request }, newId, now })

  await t.test('a text waits to be read, under a name made from its title', async (t) => {
    const document = await write({ tagKeys: ['faq', 'faq'], workerIds: [workerId.toUpperCase(), workerId] })
    t.match(document, {
      fileName: 'opening-hours.txt',
      type: 'txt',
      status: 'queued',
      isActive: true,
      content: 'nine',
    })
    t.same(document.tagKeys, ['faq'], 'a set')
    t.same(document.workerIds, [workerId], 'of workers too')
    t.same(await findDocument(sql, accountId, document.id), document, 'and it is told as it is stored')
    t.equal(await findDocument(sql, other.accountId, document.id), null)
  })

  await t.test(
    'workers of another account and unknown ones are refused with their paths, and nothing is stored',
    async (t) => {
      const before = await listDocuments(sql, accountId, {})
      const request = { title: 'Lost', workerIds: [workerId, other.workerId, 'nobody', newId<'worker'>()] }
      t.same(await refusalOf(write(request)), ['VALIDATION_FAILED', 'workerIds.1', 'workerIds.2', 'workerIds.3'])
      t.same(await listDocuments(sql, accountId, {}), before)
    },
  )

  await t.test('lists are by worker and by tag, in the order of creation, without texts', async (t) => {
    const ids = async (query: Parameters<typeof listDocuments>[2]) =>
      (await listDocuments(sql, accountId, query)).map(({ id }) => id)
    const first = await write({ tagKeys: ['one', 'two'], workerIds: [second.id, workerId] }, start + 1)
    const last = await write({ tagKeys: ['two'], workerIds: [second.id] }, start + 2)
    t.same(await ids({ workerId: second.id }), [first.id, last.id])
    t.same(await ids({ tagKey: 'one' }), [first.id])
    t.same(await ids({ workerId: second.id, tagKey: 'two' }), [first.id, last.id])
    t.same(await ids({ workerId: other.workerId }), [])
    t.same(await ids({ workerId: 'nobody' }), [])
    t.same(await listDocuments(sql, other.accountId, { tagKey: 'one' }), [])
    const [told] = await listDocuments(sql, accountId, { tagKey: 'one' })
    t.same(new Set(told?.workerIds), new Set([workerId, second.id]), 'with all links, not only the one asked for')
    t.notOk(told && 'content' in told)
  })

  await t.test('a change replaces tags and links whole, and leaves alone what it does not name', async (t) => {
    const document = await write({ tagKeys: ['a', 'b'], workerIds: [workerId] })
    const change = (change: Parameters<typeof changeDocument>[1]['change'], now: number) =>
      changeDocument(sql, { accountId, documentId: document.id, change, now })
    t.same(await change({ title: undefined }, start + 1), { ...document, updatedAt: start + 1 })
    t.match(await change({ title: 'New', tagKeys: ['c'] }, start + 2), { fileName: 'opening-hours.txt', title: 'New' })
    t.match(await change({ workerIds: [second.id] }, start + 3), { tagKeys: ['c'], workerIds: [second.id] })
    t.same((await change({ workerIds: [], tagKeys: [] }, start + 4))?.workerIds, [])
    t.match(await change({ text: '', isActive: false }, start + 5), { content: '', isActive: false, title: 'New' })
    const foreign = change({ title: 'Not', workerIds: [other.workerId] }, start + 6)
    t.same(await refusalOf(foreign), ['VALIDATION_FAILED', 'workerIds.0'])
    t.equal((await findDocument(sql, accountId, document.id))?.title, 'New')
    const elsewhere = { accountId: other.accountId, documentId: document.id, change: { title: 'Not' }, now: start }
    t.equal(await changeDocument(sql, elsewhere), null)
  })

  await t.test('two changes at once leave the links of one of them', async (t) => {
    const document = await write({ workerIds: [] })
    const link = (workerIds: string[]) =>
      changeDocument(sql, { accountId, documentId: document.id, change: { workerIds }, now: start })
    await Promise.all([link([workerId]), link([second.id]), link([workerId]), link([second.id])])
    t.equal((await findDocument(sql, accountId, document.id))?.workerIds.length, 1)
  })

  await t.test('only written texts can be replaced', async (t) => {
    const file = {
      accountId,
      title: 'Scan',
      fileName: 'scan.pdf',
      content: 'read',
      status: 'completed',
      now: start,
    } as const
    const documentId = await createDocument(sql, { ...file, type: 'pdf', newId })
    const change = (change: Parameters<typeof changeDocument>[1]['change']) =>
      changeDocument(sql, { accountId, documentId, change, now: start })
    t.same(await refusalOf(change({ text: 'x' })), ['VALIDATION_FAILED', 'text'])
    t.match(await change({ title: 'Renamed' }), { title: 'Renamed', content: 'read' })
  })

  await t.test('of scripts with one name the newest wins; deleting it brings the older one back', async (t) => {
    const script = { title: 'Greeting', tagKeys: ['inbound_call_script'], workerIds: [workerId] }
    await write({ ...script, text: 'old' }, start + 10)
    const { id } = await write({ ...script, text: 'new' }, start + 11)
    const scriptNow = () => findCallScript(sql, accountId, workerId, 'inbound')
    t.equal(await scriptNow(), 'new')
    t.equal(await deleteDocument(sql, other.accountId, id), false)
    t.equal(await deleteDocument(sql, accountId, id), true)
    t.equal(await deleteDocument(sql, accountId, id), false)
    t.equal(await scriptNow(), 'old')
    t.same(await sql`select document_id from document_workers where document_id = ${id}`, [])
  })
})

test('a file is named after its title', (t) => {
  for (const [title, fileName] of [
    ['Opening hours, Zürich!', 'opening-hours-zurich.txt'],
    ['  1. Greeting ', '1-greeting.txt'],
    ['../../etc/passwd', 'etc-passwd.txt'],
    ['預約 說明', '預約-說明.txt'],
    ['!?', 'document.txt'],
    ['x'.repeat(300), `${'x'.repeat(100)}.txt`],
    ['𝒳'.repeat(300), `${'x'.repeat(100)}.txt`],
    ['𠀀'.repeat(150), `${'𠀀'.repeat(100)}.txt`],
  ] as const)
    t.equal(fileNameOf(title), fileName)
  t.end()
})
