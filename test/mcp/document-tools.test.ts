/** The tools of documents. docs/contract/mcp.md "Document". */
import { test } from 'tap'
import { ofWorker, openMcp } from '../scenes/mcp.ts'
import { newId, start } from '../scenes/seeded-api.ts'
import { createWorker } from '../../store/workers.ts'

type Told = { document_id: string }

void test('tools of documents', async (t) => {
  const { done, refused, grant, own, other, sql, told } = await openMcp(t)
  const second = await createWorker(sql, { accountId: own.id, name: 'Second', language: 'de', newId, now: start })
  const foreign = await done(
    'create_document',
    { title: 'Theirs', text: 'secret' },
    { token: grant({ accountId: other.id }) },
  )
  const admin = { token: grant(ofWorker(own.worker.id)) }
  const ids = async (args: object = {}, options = {}) =>
    (await done('list_documents', { ...args }, options)).documents.map(({ document_id }: Told) => document_id)

  await t.test(
    'a new one is queued, a call script in use at once, and both are listed without their texts',
    async (t) => {
      const plain = await done('create_document', { title: 'Opening hours', text: 'From 9 to 17.' })
      t.match(plain, {
        title: 'Opening hours',
        type: 'txt',
        status: 'queued',
        is_active: true,
        tag_keys: [],
        worker_ids: [],
      })
      const script = await done('create_document', {
        title: 'Script',
        text: 'say "Hello."',
        worker_id: own.worker.id,
        tag_keys: ['outbound_call_script'],
      })
      t.match(script, { status: 'completed', worker_ids: [own.worker.id], tag_keys: ['outbound_call_script'] })
      t.same(await ids(), [plain.document_id, script.document_id])
      t.same(await ids({ worker_id: own.worker.id }), [script.document_id])
      t.same(await ids({ tag_key: 'outbound_call_script' }), [script.document_id])
      t.same(await ids({ worker_id: newId() }), [])
      t.notMatch(JSON.stringify(await done('list_documents')), /From 9/)
      t.ok(told.includes(own.id), 'who listens for tools is told')
    },
  )

  await t.test('a script that cannot be followed is stored switched off, and says where', async (t) => {
    const wrong = {
      title: 'Wrong',
      text: 'say Hello.\nask (): What?',
      tag_keys: ['inbound_call_script'],
      worker_id: second.id,
    }
    const document = await done('create_document', wrong)
    t.equal(document.is_active, false)
    t.match(document.script_errors, [{ line: 2 }])
  })

  await t.test('its text is told whole up to 100,000 characters, and never in the middle of a letter', async (t) => {
    const textOf = async (text: string, args: object = {}) => {
      const { document_id } = await done('create_document', { title: 'Long', text })
      return done('get_document', { document_id, ...args })
    }
    t.match(
      await textOf('short'),
      { text: 'short', truncated: false, status: 'queued' },
      'as it is stored, before it was read',
    )
    const whole = 'a'.repeat(100_000)
    const told = async (text: string) => {
      const { text: shown, truncated } = await textOf(text)
      return [shown.length, text.startsWith(shown), truncated]
    }
    t.same(await told(whole), [100_000, true, false])
    t.same(await told(`${whole}b`), [100_000, true, true])
    t.same(await told(`${'a'.repeat(99_999)}😀`), [99_999, true, true])
    t.same(await told(`${'a'.repeat(99_998)}😀b`), [100_000, true, true])
    const bare = await textOf('short', { include_content: false })
    t.notOk('text' in bare || 'truncated' in bare)
  })

  await t.test('what is made from a file has its text once it is completed', async (t) => {
    const { document_id } = await done('create_document', { title: 'From a file', text: 'processed' })
    await sql`update documents set type = 'pdf', status = 'queued' where id = ${document_id}`
    t.match(await done('get_document', { document_id }), { text: null, truncated: false })
    await sql`update documents set status = 'completed' where id = ${document_id}`
    t.match(await done('get_document', { document_id }), { text: 'processed' })
    t.same(await refused('update_document', { document_id, text: 'other' }), ['VALIDATION_FAILED', 'text'])
  })

  await t.test('only what is named changes; tag_keys replaces the whole set; a new text is queued', async (t) => {
    const { document_id } = await done('create_document', { title: 'One', text: 'first', tag_keys: ['a', 'b'] })
    await sql`update documents set status = 'completed' where id = ${document_id}`
    t.match(await done('update_document', { document_id, title: 'Two' }), { title: 'Two', tag_keys: ['a', 'b'] })
    t.same((await done('update_document', { document_id, tag_keys: ['c'] })).tag_keys, ['c'])
    t.match(await done('update_document', { document_id, is_active: false }), { is_active: false, tag_keys: ['c'] })
    await done('update_document', { document_id, text: 'second' })
    t.match(await done('get_document', { document_id }), { text: 'second', title: 'Two', is_active: false })
    const jobs = await sql`select from document_jobs where document_id = ${document_id}`
    t.equal(jobs.length, 1, 'it is worked in again')
  })

  await t.test('delete_document deletes it, once', async (t) => {
    const { document_id } = await done('create_document', { title: 'Gone', text: 'x' })
    t.same(await done('delete_document', { document_id }), { document_id, deleted: true })
    t.same(await refused('delete_document', { document_id }), ['NOT_FOUND', 'document_id'])
  })

  await t.test('what is wrong is named by its argument', async (t) => {
    t.same(await refused('create_document', { text: 'x' }), ['VALIDATION_FAILED', 'title'])
    t.same(await refused('create_document', { title: 'x', text: 'x', worker_id: other.worker.id }), [
      'VALIDATION_FAILED',
      'worker_id',
    ])
    t.same(await refused('create_document', { title: 'x', text: 'x', tag_keys: ['Bad Key'] }), [
      'VALIDATION_FAILED',
      'tag_keys.0',
    ])
    t.same(await refused('create_document', { title: 'x', text: 'x', file_name: 'x.txt' }), [
      'VALIDATION_FAILED',
      'file_name',
    ])
  })

  await t.test('no tool reaches a document of another account', async (t) => {
    const { document_id } = foreign
    for (const tool of ['get_document', 'update_document', 'delete_document'])
      t.same(await refused(tool, { document_id }), ['NOT_FOUND', 'document_id'], tool)
    t.notOk((await ids()).includes(document_id))
  })

  await t.test(
    'the scope admin reaches what is linked to its worker, and changes what is linked to no other',
    async (t) => {
      const mine = await done('create_document', { title: 'Mine', text: 'x' }, admin)
      t.same(mine.worker_ids, [own.worker.id], 'a new one is linked to it')
      const shared = await done('create_document', { title: 'Shared', text: 'x', worker_id: own.worker.id })
      await sql`insert into document_workers ${sql({ accountId: own.id, documentId: shared.document_id, workerId: second.id })}`
      const loose = await done('create_document', { title: 'Loose', text: 'x' })
      const seen = await ids({}, admin)
      t.ok(seen.includes(mine.document_id) && seen.includes(shared.document_id) && !seen.includes(loose.document_id))
      t.same((await done('get_document', { document_id: shared.document_id }, admin)).worker_ids, [own.worker.id])
      t.equal((await done('update_document', { document_id: mine.document_id, title: 'New' }, admin)).title, 'New')
      t.same(await refused('update_document', { document_id: shared.document_id, title: 'New' }, admin), [
        'INSUFFICIENT_SCOPE',
        'document_id',
      ])
      t.same(await refused('get_document', { document_id: loose.document_id }, admin), ['NOT_FOUND', 'document_id'])
      t.same(await refused('list_documents', { worker_id: second.id }, admin), ['NOT_FOUND', 'worker_id'])
      t.same(await refused('create_document', { title: 'x', text: 'x', worker_id: second.id }, admin), [
        'NOT_FOUND',
        'worker_id',
      ])
    },
  )
})
