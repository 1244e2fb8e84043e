/** docs/contract/rest.md "Documents": former texts of call scripts are kept, and can be gone back to. */
import { test } from 'tap'
import { keepVersion, listVersions } from '../../store/document-versions.ts'
import { openSeededApi } from '../scenes/seeded-api.ts'

test('former texts of a call script', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const documents = `/v1/accounts/${own.id}/documents`
  const make = async (tagKeys: string[]) =>
    (await ask(documents, { method: 'POST', json: { title: 'Script', text: 'one', tagKeys } })).json.id
  const write = (id: string, json: object) => ask(`${documents}/${id}`, { method: 'PATCH', json })
  const id = await make(['inbound_call_script'])
  const versions = async (of = id) => (await ask(`${documents}/${of}/versions`)).json

  t.same(await versions(), [], 'there are none before it is changed')
  await write(id, { text: 'two' })
  await write(id, { title: 'Other' })
  await write(id, { text: 'two' })
  await write(id, { text: 'three' })
  t.match(await versions(), [
    { version: 2, characters: 3 },
    { version: 1, characters: 3 },
  ])
  t.equal((await versions()).length, 2, 'what changes no text makes none')
  t.equal((await ask(`${documents}/${id}/versions/1`)).json.text, 'one')
  for (const wrong of ['3', '0', '-1', 'x', '9999999999'])
    t.equal((await ask(`${documents}/${id}/versions/${wrong}`)).status, 404)
  t.equal((await ask(`/v1/accounts/${other.id}/documents/${id}/versions`, { key: other.key })).status, 404)
  t.equal((await ask(`/v1/accounts/${other.id}/documents/${id}/versions/1`, { key: other.key })).status, 404)

  const knowledge = await make([])
  await write(knowledge, { text: 'two' })
  t.same(await versions(knowledge), [], 'knowledge has none')

  await sql.begin(async (tx) => {
    for (let index = 0; index < 60; index++)
      await keepVersion(tx, { accountId: own.id, documentId: id, content: `${index}`, savedAt: index })
  })
  const kept = await listVersions(sql, own.id, id)
  t.same([kept.length, kept[0]?.version, kept.at(-1)?.version], [50, 62, 13], 'the newest fifty stay')

  await ask(`${documents}/${id}`, { method: 'DELETE' })
  t.same(await sql`select from document_versions where document_id = ${id}`, [], 'they go with their document')
})
