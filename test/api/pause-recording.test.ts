/** Pausing recordings over REST, as docs/contract/rest.md "Pausing a recording" has it. */
import { test } from 'tap'
import type { CallSide } from '../../app/call-side.ts'
import type { Bus } from '../../model/bus.ts'
import type { CallId } from '../../model/ids.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { until } from '../scenes/in-time.ts'
import { newId, openSeededApi } from '../scenes/seeded-api.ts'

test('the recording of a call that is answered is paused and goes on', async (t) => {
  const { ask, own, other, deps } = await openSeededApi(t)
  const side = deps as unknown as { readonly bus: Bus } & Pick<CallSide, 'admission'>
  const account = `/v1/accounts/${own.id}`
  const post = (path: string, json?: unknown) => ask(path, { method: 'POST', ...(json !== undefined && { json }) })
  const session = (await post(`${account}/web-calls`, { workerId: own.worker.id })).json as {
    callId: CallId
    token: string
  }
  const at = `${account}/phone-calls/${session.callId}`
  const recording = `${at}/recording`
  t.match(await post(`${recording}/pause`), { status: 409, json: { type: 'CONFLICT' } }, 'nobody is there yet')

  const leg = createScriptedLeg(side.bus, session.callId)
  await side.admission.admit(session.token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await until(() => leg.commands.some(({ type }) => type === 'start'))
  for (const again of [1, 2])
    t.match(
      await post(`${recording}/pause`),
      { status: 200, json: { id: session.callId, recordingState: 'paused' } },
      `${again}`,
    )
  t.match((await ask(at)).json, { recordingState: 'paused' })
  for (const again of [1, 2])
    t.match(await post(`${recording}/resume`), { status: 200, json: { recordingState: 'on' } }, `${again}`)
  await until(() => leg.commands.filter(({ type }) => type === 'record').length === 2)

  const elsewhere = `/v1/accounts/${other.id}/phone-calls/${session.callId}/recording/pause`
  t.equal((await ask(elsewhere, { method: 'POST', key: other.key })).status, 404)
  t.equal((await post(`${account}/phone-calls/${newId()}/recording/pause`)).status, 404)
  t.equal((await ask(`${recording}/pause`, { method: 'POST', key: null })).status, 401)
  t.equal((await ask(`${recording}/pause`)).status, 405)

  await post(`${at}/hangup`)
  await until(async () => ((await ask(at)).json as { status: string }).status === 'completed')
  for (const verb of ['pause', 'resume'])
    t.match(await post(`${recording}/${verb}`), {
      status: 409,
      json: { type: 'CONFLICT', details: 'The call is over.' },
    })
})
