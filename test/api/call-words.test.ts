/** docs/contract/rest.md "Lists": calls that are over are found by words of what was said in them, by an index, those of the account alone, as long as it is kept. */
import { test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import { searchWordsOf } from '../../model/search-words.ts'
import { readFormerCallWords, renewCallWords } from '../../store/call-words.ts'
import { forgetTranscripts } from '../../store/retention.ts'
import { insertCall, insertTurns, openSeededApi, start } from '../scenes/seeded-api.ts'

test('calls by words of what was said', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const path = `/v1/accounts/${own.id}/phone-calls`
  let minutes = 0
  const talk = async (texts: readonly string[], account = own, columns: object = {}): Promise<CallId> => {
    const at = start - ++minutes * 60_000
    const over = { progress: 'completed', outcome: 'completed', finished: true, createdAt: at, endedAt: at + 1_000 }
    const callId = await insertCall(sql, account.id, account.worker.id, { ...over, ...columns })
    const turn = { from: 0, to: 900, confidence: null, source: null }
    await insertTurns(
      sql,
      account.id,
      callId,
      texts.map((text) => ({ ...turn, role: 'user' as const, text })),
    )
    return callId
  }
  const found = async (q: string, more = ''): Promise<CallId[]> =>
    (await ask(`${path}?q=${encodeURIComponent(q)}${more}`)).json.data.map(({ id }: { id: CallId }) => id)

  const kettle = await talk(['My kettle leaks.', 'It is a Käthe-3000, “brand new”.'])
  const both = await talk(['The kettle is fine, but the toaster burns'], own, { direction: 'inbound' })
  const theirs = await talk(['a kettle of theirs'], other)

  await t.test('those of an older version are read once, and no call that runs', async (t) => {
    const running = await talk(['kettle'], own, {
      progress: 'in_progress',
      outcome: null,
      finished: false,
      endedAt: null,
    })
    t.same(await found('kettle'), [])
    await sql`insert into call_words_walk values ('ffffffff-ffff-7fff-bfff-ffffffffffff')`
    t.ok((await readFormerCallWords(sql)) >= 4)
    t.same(await found('kettle'), [kettle, both])
    t.equal(await readFormerCallWords(sql), 0, 'and not again')
    await renewCallWords(sql, [running])
    t.same(await found('kettle'), [kettle, both])
  })

  await t.test('whole words, all of them, in any case and with any accents', async (t) => {
    t.same(await found('KETTLE toaster'), [both])
    t.same(await found('kathe 3000 “Brand”'), [kettle])
    t.same(await found('Kette'), [])
    t.same(await found('leaks burns'), [])
    t.same(searchWordsOf(["Don't, don’t", 'Ünïted', 'x'.repeat(100_000)]), ["don't", 'united', 'x'.repeat(40)])
  })

  await t.test('with the other filters, a page at a time, and nobody else', async (t) => {
    t.same(await found('kettle', '&direction=inbound').then((ids) => ids.includes(both)), true)
    t.same(await found('kettle', '&status=failed'), [])
    t.same(await found('kettle', `&to=${new Date(start - 90_000).toISOString()}`), [both])
    const { data, nextCursor } = (await ask(`${path}?q=kettle&limit=1`)).json
    t.equal(data[0].id, kettle)
    t.same(await found('kettle', `&cursor=${nextCursor}`), [both])
    t.notOk((await found('theirs')).includes(theirs))
    for (const nothing of ['"!"', '\u037a', '\ufe70'])
      t.match(await ask(`${path}?q=${encodeURIComponent(nothing)}`), { status: 400, json: { issues: [{ path: 'q' }] } })
  })

  await t.test('by its index, however many calls there are', async (t) => {
    await sql`
      insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished, created_at)
      select 'many' || n, ${own.id}, ${own.worker.id}, 's' || n, 'inbound', 'webrtc', 'completed', 'completed', '{}', true,
        to_timestamp(${start / 1000}::float8) - interval '1 day' - n * interval '1 second'
      from generate_series(1, 5000) n`
    await sql`
      insert into call_words select id, account_id, created_at, array['common', 'n' || session_id] from calls where id like 'many%'`
    await sql.unsafe('analyze call_words')
    const keys = [`${own.id.slice(-12)}kettle`]
    const plan = await sql.unsafe(
      'explain select call_id from call_words where call_word_keys(account_id, words) @> $1::text[] order by created_at desc limit 20',
      [keys],
    )
    t.match(JSON.stringify(plan), /call_words_found/)
    t.equal((await found('common', '&limit=100')).length, 100)
    t.same(await found('common', '&status=busy'), [])
    t.same(await found('ns4321'), ['many4321'], 'behind those that are looked through first')
    t.same(await found('common ns4321', '&direction=inbound'), ['many4321'])
  })

  await t.test('until what was said is removed', async (t) => {
    const forgetting = { accountId: own.id, before: start, now: start, limit: 10_000 }
    await sql`delete from calls where id like 'many%'`
    t.equal((await ask(`${path}/${kettle}`, { method: 'DELETE' })).status, 204)
    t.same(await found('kettle'), [both])
    await forgetTranscripts(sql, forgetting, (snapshot) => snapshot)
    t.same(await found('kettle'), [])
    const [left] = await sql`select count(*)::int as rows from call_words where account_id = ${own.id}`
    t.same(left, { rows: 0 })
  })
})
