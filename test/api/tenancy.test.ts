/**
 * docs/contract/rest.md "Keys and accounts": what belongs to another account answers exactly like what does not exist. Every operation of the
 * OpenAPI document.
 */
import { test } from 'tap'
import { sampleOf } from '../scenes/api-operations.ts'
import { newId } from '../scenes/seeded-api.ts'
import { goodRequestOf, openWholeApi, pathOf } from '../scenes/whole-api.ts'
import { referencesOf, withValue } from './wrong-bodies.ts'

const notFound = {
  statusCode: 404,
  type: 'NOT_FOUND',
  localizedKey: 'errors.notFound',
  details: 'No such resource.',
}
const withoutId = (body: { requestId?: string }) => {
  const { requestId: _, ...rest } = body
  return rest
}
const namesIn = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

test('tenancy', async (t) => {
  const { ask, document, operations, own, other, sql } = await openWholeApi(t)
  const keyed = operations.filter(({ open }) => !open)
  /** Everything that is stored, but when keys were used, what was noted of the attempts, and what a row's system columns say. */
  const stored = async () => {
    const tables = await sql<{ name: string }[]>`
      select table_name as name from information_schema.tables where table_schema = 'public' order by 1`
    const rows = await Promise.all(
      tables.map(
        ({ name }) => sql`select count(*) as count, md5(string_agg(t::text, '|' order by t::text)) from ${sql(name)} t`,
      ),
    )
    return tables
      .map(({ name }, index) => ({ name, rows: rows[index]?.[0] }))
      .filter(({ name }) => !['api_keys', 'audit_entries'].includes(name))
  }

  await t.test('another account answers 404, whatever is asked of it', async (t) => {
    const before = await stored()
    for (const operation of keyed.filter(({ path }) => path.includes('{accountId}'))) {
      for (const ids of [other.ids, { ...own.ids, accountId: other.ids['accountId'] ?? '' }]) {
        const answer = await ask(pathOf(operation, ids), goodRequestOf(document, operation, own))
        t.equal(answer.status, 404, operation.id)
        t.same(withoutId(answer.json), notFound)
      }
    }
    t.same(await stored(), before, 'nothing was changed')
  })

  await t.test('a resource of another account answers 404 like one that does not exist and like no id', async (t) => {
    const before = await stored()
    let asked = 0
    for (const operation of keyed)
      for (const name of namesIn(operation.path).filter((given) => given !== 'accountId'))
        for (const id of [other.ids[name] ?? '', newId(), 'no-id', "1'; drop table calls"]) {
          asked += 1
          const target = pathOf(operation, { ...own.ids, [name]: id })
          const answer = await ask(target, goodRequestOf(document, operation, own))
          t.equal(answer.status, 404, `${operation.id} with ${name} ${id}`)
          t.same(withoutId(answer.json), notFound)
        }
    t.ok(asked > 100)
    t.same(await stored(), before, 'nothing was changed')
  })

  await t.test('an id of another account in a query finds nothing, or is 400 with its name', async (t) => {
    let asked = 0
    for (const operation of keyed)
      for (const { name } of operation.parameters.filter(
        (given) => given.in === 'query' && given.name.endsWith('Id'),
      )) {
        const foreign = other.ids[name === 'callId' ? 'phoneCallId' : name]
        if (foreign === undefined) continue
        asked += 1
        const answer = await ask(`${pathOf(operation, own.ids)}?${name}=${foreign}`)
        if (answer.status === 400)
          t.same(
            answer.json.issues.map((issue: { path: string }) => issue.path),
            [name],
          )
        else t.same(answer.json.data ?? answer.json, [], `${operation.id} with ${name}`)
      }
    t.ok(asked >= 5, `${asked} filters`)
  })

  await t.test('an id of another account in a body is 400 with its place, like one of nobody', async (t) => {
    const before = await stored()
    let asked = 0
    for (const operation of keyed) {
      const { body } = operation
      if (!body) continue
      for (const { path, name } of referencesOf(document, body, own.ids)) {
        const answers = []
        for (const id of [other.ids[name.replace(/Ids$/, 'Id')], newId()]) {
          asked += 1
          const json = withValue(sampleOf(document, body, own.ids), path, id)
          const answer = await ask(pathOf(operation, own.ids), { ...goodRequestOf(document, operation, own), json })
          t.equal(answer.status, 400, `${operation.id} with ${path.join('.')} ${id}`)
          t.same(
            answer.json.issues?.map((issue: { path: string }) => issue.path),
            [path.join('.')],
          )
          answers.push(withoutId(answer.json))
        }
        t.same(answers[0], answers[1], `${operation.id}: a foreign ${name} reads like an unknown one`)
      }
    }
    t.ok(asked > 20, `${asked} bodies`)
    t.same(await stored(), before, 'nothing was changed')
  })

  await t.test('without a key, or with one of nobody, every operation is 401 before anything else', async (t) => {
    for (const operation of keyed)
      for (const key of [null, `vk_${'0'.repeat(43)}`]) {
        const answer = await ask(pathOf(operation, own.ids), { ...goodRequestOf(document, operation, own), key })
        t.equal(answer.status, 401, operation.id)
      }
  })

  await t.test('the matrix can fail: to its own account each of these answers', async (t) => {
    for (const operation of keyed.filter(({ method }) => method === 'get')) {
      t.equal((await ask(pathOf(operation, other.ids), { key: other.key })).status, 200, operation.id)
      t.equal((await ask(pathOf(operation, own.ids))).status, 200, operation.id)
    }
  })
})
