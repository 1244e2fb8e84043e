/**
 * Owns `npm run bench console [calls]`: the console of an account with so many calls (100,000) in Chromium; how long a page takes until something is painted, and until
 * its list is there. Each page is opened by its address, several times; the first of all is the first load of a new browser, whose bytes are counted. And what the
 * list of 200 running calls costs a second, by CPU: while nothing changes, and while all of them change every second.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import type { AccountId } from '../../model/ids.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { openBrowsers, openConsole, type ConsoleScene } from '../scenes/console.ts'
import { newId } from '../scenes/seeded-api.ts'
import { fillCallsOf } from './growth-fill.ts'
import { printTable, quantile } from './table.ts'

const rounds = 7
const runningCalls = 200
/** Seconds. */
const watchedFor = 10

/** Of each what its list shows. */
const pages = [
  ['live', '/console', 'main .rows tbody tr'],
  ['calls', '/console/calls', 'main .rows tbody tr'],
  ['calls: a worker, inbound', '/console/calls?direction=inbound&status=completed', 'main .rows tbody tr'],
  ['calls: a word that all have', '/console/calls?q=common', 'main .rows tbody tr'],
  ['calls: a word of a thousandth', '/console/calls?q=thousandth7', 'main .rows tbody tr'],
  ['calls: a word that all have, busy; none', '/console/calls?q=common&status=busy', 'main .empty'],
] as const

export async function benchConsole(given: readonly string[]): Promise<void> {
  const calls = Number(given[0] ?? 100_000)
  const closing: (() => Promise<void>)[] = []
  const t = { teardown: (close: () => Promise<void>) => closing.unshift(close) }
  try {
    const scene = await openConsole(t)
    const { server } = scene.database
    const filling = connect({ server, applicationName: 'parley bench', maxConnections: 2, statementTimeout: 900_000 })
    t.teardown(() => filling.end({ timeout: 1 }))
    const accountId = await fillCallsOf(filling, calls, newId)
    await scene.addUser('olive@example.com', 'owner', accountId)
    const signIn = await openBrowsers(t, scene)
    const { page } = await signIn('olive@example.com')
    const rows = [rowOf('live, the first load', [await painted(page, pages[0][2])])]
    const loaded = await bytesOf(page)
    for (const [name, path, list] of pages) rows.push(rowOf(name, await opened(page, scene.url + path, list)))
    console.log(`\n${calls} calls stored, ${rounds} loads of each page but the first`)
    printTable(rows)
    console.log(`\nFirst load: ${loaded.bytes} bytes, compressed, in ${loaded.files} files`)
    console.log(`\n${runningCalls} running calls, ${watchedFor} s; CPU, ms a second`)
    printTable(await watchRunning(scene, page, { filling, accountId }))
  } finally {
    for (const close of closing) await close()
  }
}

type Painted = { readonly first: number; readonly list: number }

async function opened(page: Page, url: string, list: string): Promise<Painted[]> {
  const all: Painted[] = []
  for (let round = 0; round < rounds; round += 1) {
    await page.goto(url, { waitUntil: 'commit' })
    all.push(await painted(page, list))
  }
  return all
}

/** Ms since the page was asked for. */
async function painted(page: Page, list: string): Promise<Painted> {
  await page.locator(list).first().waitFor()
  return page.evaluate(`({
    first: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
    list: performance.now(),
  })`)
}

/** The page itself is no resource of its own. */
const bytesOf = (page: Page) =>
  page.evaluate(`(() => {
    const sizes = performance.getEntriesByType('resource').map(({ encodedBodySize }) => encodedBodySize)
    const [{ encodedBodySize }] = performance.getEntriesByType('navigation')
    return { bytes: sizes.reduce((sum, size) => sum + size, encodedBodySize), files: sizes.length + 1 }
  })()`) as Promise<{ bytes: number; files: number }>

type Watched = { readonly filling: Sql; readonly accountId: AccountId }

/** CPU of the page's main thread, and of this process, which answers it and has the browser's driver and the changes themselves in it as well. */
async function watchRunning({ url }: ConsoleScene, page: Page, { filling, accountId }: Watched) {
  await filling`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, started_at, from_number)
    select 'running' || n, account_id, worker_id, 's' || n, 'inbound', 'sip_trunk', 'in_progress', '{}', now(), '+4930' || n
    from (select account_id, worker_id from calls where account_id = ${accountId} limit 1) one, generate_series(1, ${runningCalls}::integer) n`
  await page.goto(`${url}/console`)
  await page
    .locator('main .rows tbody tr')
    .nth(runningCalls - 1)
    .waitFor()
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  const cpuMs = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return 1000 * (metrics.find(({ name }) => name === 'ThreadTime')?.value ?? NaN)
  }
  const rows = []
  let turn = 0
  for (const changes of [false, true]) {
    await pause(2_000)
    const [before, own] = [await cpuMs(), process.cpuUsage()]
    for (let second = 0; second < watchedFor; second++, turn++) {
      if (changes)
        await filling`
          insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms)
          select 'running' || n, ${accountId}, ${turn}, 'user', 'What is said as number ' || ${turn}::text, ${turn * 1000}, ${turn * 1000 + 900}
          from generate_series(1, ${runningCalls}::integer) n`
      await pause(1_000)
    }
    const { user, system } = process.cpuUsage(own)
    const newest = page.getByText(`What is said as number ${turn - 1}`)
    if (changes) await newest.nth(runningCalls - 1).waitFor()
    const ofPage = ((await cpuMs()) - before) / watchedFor
    const told = { 'page, ms': ofPage.toFixed(1), 'this process, ms': ((user + system) / 1000 / watchedFor).toFixed(1) }
    rows.push({
      while: changes ? 'all change every second' : 'nothing changes',
      ...told,
      'page, % of a core': (ofPage / 10).toFixed(1),
    })
  }
  return rows
}

function rowOf(page: string, all: readonly Painted[]): Record<string, string> {
  const of = (values: readonly number[]) => `${quantile(values, 0.5).toFixed(0)} / ${Math.max(...values).toFixed(0)}`
  return {
    page,
    'first paint, ms p50 / most': of(all.map(({ first }) => first)),
    'list, ms p50 / most': of(all.map(({ list }) => list)),
  }
}
