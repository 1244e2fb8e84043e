/** Owns `npm run bench echo [seconds=10] [calls]`: the bare echo and the empty beat by themselves, which is the machine of this minute. */
import { createTicker } from '../../media/ticker/ticker.ts'
import { openBareEcho } from './bare-echo.ts'
import { after } from './open-loaded.ts'
import { openMachineBeat } from './machine-beat.ts'
import { preparePhoneSound } from './phone-load.ts'
import { cellsOf, measureRow, talkMsOf } from './phone-row.ts'
import { printTable } from './table.ts'
import { talkWishOf } from './talk-wish.ts'

export async function benchEcho(given: readonly string[]): Promise<void> {
  const { counts, talkMs = talkMsOf.echo } = talkWishOf(given, [50])
  await using closing = new AsyncDisposableStack()
  const echo = await openBareEcho(closing)
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  const machine = openMachineBeat()
  closing.defer(() => machine.close())
  const deps = { ticker, sound: preparePhoneSound(), machine }
  const rows: Record<string, string>[] = []
  for (const count of counts) rows.push(cellsOf('bare echo', await measureRow(echo, deps, { count, talkMs }), null))
  printTable(rows)
}
