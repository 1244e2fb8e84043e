/**
 * Owns `npm run bench console [calls]`: the console of an account with so many calls (100,000) in Chromium; how long a page takes until something is painted, and until
 * its list is there. Each page is opened by its address, several times; the first of all is the first load of a new browser.
 */
import type { Page } from 'playwright-core'
import { connect } from '../../store/sql.ts'
import { openBrowsers, openConsole } from '../scenes/console.ts'
import { newId } from '../scenes/seeded-api.ts'
import { fillCallsOf } from './growth-fill.ts'
import { printTable, quantile } from './table.ts'

const rounds = 7

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
    for (const [name, path, list] of pages) rows.push(rowOf(name, await opened(page, scene.url + path, list)))
    console.log(`\n${calls} calls stored, ${rounds} loads of each page but the first`)
    printTable(rows)
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

function rowOf(page: string, all: readonly Painted[]): Record<string, string> {
  const of = (values: readonly number[]) => `${quantile(values, 0.5).toFixed(0)} / ${Math.max(...values).toFixed(0)}`
  return {
    page,
    'first paint, ms p50 / most': of(all.map(({ first }) => first)),
    'list, ms p50 / most': of(all.map(({ list }) => list)),
  }
}
