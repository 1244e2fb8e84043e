/** The tools of workers and of the account. docs/contract/mcp.md "Workers", "Failures". */
import { test } from 'tap'
import { ofWorker, openMcp } from '../scenes/mcp.ts'
import { newId, start } from '../scenes/seeded-api.ts'
import { createWorker } from '../../store/workers.ts'

void test('tools of workers', async (t) => {
  const mcp = await openMcp(t)
  const { done, refused, call, grant, own, other, sql, noted, told } = mcp
  const second = await createWorker(sql, { accountId: own.id, name: 'Second', language: 'de', newId, now: start })
  const admin = { token: grant(ofWorker(own.worker.id)) }

  await t.test('list_workers lists those of the account, as data and as text', async (t) => {
    const { structuredContent, content } = await call('list_workers')
    t.same(
      structuredContent.workers.map(({ worker_id }: { worker_id: string }) => worker_id),
      [own.worker.id, second.id],
    )
    t.same(JSON.parse(content[0].text), structuredContent)
  })

  await t.test('the scope admin sees the granted worker only', async (t) => {
    t.same((await done('list_workers', {}, admin)).workers.length, 1)
    t.same(await refused('get_worker_details', { worker_id: second.id }, admin), ['NOT_FOUND', 'worker_id'])
    t.same(await refused('update_worker_settings', { worker_id: second.id, name: 'x' }, admin), [
      'NOT_FOUND',
      'worker_id',
    ])
    t.equal((await done('get_worker_details', { worker_id: own.worker.id }, admin)).name, 'own worker')
    t.same((await done('list_workers', {}, { token: grant(ofWorker(other.worker.id)) })).workers, [])
  })

  await t.test('what belongs to another account, what is no id and what is not there are the same', async (t) => {
    for (const worker_id of [other.worker.id, newId(), 'no id', ''])
      t.same(await refused('get_worker_details', { worker_id }), ['NOT_FOUND', 'worker_id'])
  })

  await t.test('only what is named changes, and config is merged key by key', async (t) => {
    const worker_id = second.id
    await done('update_worker_settings', { worker_id, config: { ringTimeout: 20, voiceId: 'ada' } })
    const changed = await done('update_worker_settings', {
      worker_id,
      name: 'Third',
      is_active: false,
      outbound_phone_number: '+4930123456',
      config: { ringTimeout: null, firstSpeechTimeout: 2 },
    })
    t.match(changed, { name: 'Third', language: 'de', is_active: false, outbound_phone_number: '+4930123456' })
    t.same(changed.config, { voiceId: 'ada', firstSpeechTimeout: 2 })
    t.equal(changed.effective_config.ringTimeout, 30)
    t.same(told, [own.id, own.id], 'who listens is told')
    t.same(await done('update_worker_settings', { worker_id, outbound_phone_number: null }), {
      ...changed,
      outbound_phone_number: null,
    })
  })

  await t.test('what is wrong is named by its argument, and nothing changes', async (t) => {
    const worker_id = second.id
    const wrong = async (args: object) => refused('update_worker_settings', { worker_id, ...args })
    t.same(await wrong({ colour: 'red' }), ['VALIDATION_FAILED', 'colour'])
    t.same(await wrong({ isActive: false }), ['VALIDATION_FAILED', 'isActive'], 'as the client named it')
    t.same(await wrong({ config: { colour: 'red', ringTimeout: 'long' } }), [
      'VALIDATION_FAILED',
      'config.ringTimeout',
      'config.colour',
    ])
    t.same(await wrong({ inbound_phone_number: '030' }), ['VALIDATION_FAILED', 'inbound_phone_number'])
    t.same(await wrong({ name: 'a\0b' }), ['VALIDATION_FAILED', 'name'])
    t.same(await wrong({ config: { voiceId: '\ud800' } }), ['VALIDATION_FAILED', 'config.voiceId'])
    t.same(await refused('update_worker_settings', {}), ['VALIDATION_FAILED', 'worker_id'])
    t.equal((await done('get_worker_details', { worker_id })).name, 'Third')
  })

  await t.test('every call is noted: by whom, for what, what came of it', async (t) => {
    noted.length = 0
    await done('list_workers', {}, admin)
    await refused('get_worker_details', { worker_id: second.id }, admin)
    t.match(noted, [
      {
        accountId: own.id,
        actor: { kind: 'mcp_client', clientId: 'client-1' },
        action: 'account_admin__list_workers',
        result: 'success',
      },
      {
        action: 'account_admin__get_worker_details',
        arguments: { worker_id: second.id },
        result: 'error',
        errorCode: 'NOT_FOUND',
      },
    ])
    t.ok(noted[0]?.requestId)
  })
})
