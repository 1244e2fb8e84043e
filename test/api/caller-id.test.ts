/** docs/contract/rest.md "Phone calls": the number that a call shows, and the SIP headers that it takes along. */
import { test } from 'tap'
import { openWholeApi } from '../scenes/whole-api.ts'

test('a call shows a number of the account, and takes headers along', async (t) => {
  const { ask, own, other, sql } = await openWholeApi(t)
  const workerId = own.ids['workerId'] ?? ''
  const post = (changes: object) =>
    ask(`/v1/accounts/${own.ids['accountId']}/phone-calls`, {
      method: 'POST',
      json: { workerId, phoneNumber: '+4930100', ...changes },
    })
  const refusal = async (changes: object) => {
    const { status, json } = await post(changes)
    return [status, json.type, ...(json.issues ?? []).map(({ path }: { path: string }) => path)]
  }
  await sql`update workers set inbound_phone_number = '+4930777', outbound_phone_number = '+4930778' where id = ${workerId}`
  await sql`update workers set inbound_phone_number = '+4930888' where id = ${other.ids['workerId'] ?? ''}`

  await t.test('from is one of the numbers of the account, else the worker’s is shown', async (t) => {
    t.match((await post({})).json, { fromNumber: '+4930778' })
    t.match((await post({ from: '+4930777' })).json, { fromNumber: '+4930777', toNumber: '+4930100' })
    for (const from of ['+4930888', '+4930999'])
      t.same(await refusal({ from }), [400, 'VALIDATION_FAILED', 'from'], 'nobody shows a number of somebody else')
    t.same(await refusal({ from: '030777' }), [400, 'VALIDATION_FAILED', 'from'])
  })

  await t.test('headers are kept for the INVITE; one that cannot be is named', async (t) => {
    const headers = { 'X-Order': '4711', 'X-Name': 'Käthe' }
    const { json } = await post({ headers })
    const [row] = await sql`select request from calls where id = ${json.id}`
    t.same(row?.['request'], { headers })
    t.same(await refusal({ headers: { 'X-Foo': 'a\r\nVia: b' } }), [400, 'VALIDATION_FAILED', 'headers.X-Foo'])
    t.same(await refusal({ headers: { 'X-Foo': 'a\0b' } }), [400, 'VALIDATION_FAILED', 'headers.X-Foo'])
    t.same(await refusal({ headers: { Via: 'x', 'X-Ok': '1' } }), [400, 'VALIDATION_FAILED', 'headers.Via'])
    t.same(await refusal({ headers: ['X-Foo'] }), [400, 'VALIDATION_FAILED', 'headers'])
  })
})
