/**
 * Owns when `npm start` ends: on SIGINT, SIGTERM or SIGHUP, and with the npm that started it. A signal to the whole group comes twice, because
 * npm passes it on; one that comes a second later is somebody who does not want to wait.
 */
import process from 'node:process'
import type { Clock } from '../../model/clock.ts'

/** Ms after which a signal is another one. */
const passedOnWithin = 1_000
const lookEvery = 500

const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

/** `end` runs once and never rejects. Without it in time, a further signal ends the process at once. */
export function endWithProcess(
  { clock, isOfNpm }: { readonly clock: Clock; readonly isOfNpm: boolean },
  end: () => Promise<void>,
): void {
  let endingSince: number | null = null
  const begin = (): void => {
    if (endingSince !== null) return
    endingSince = clock.now()
    void end()
  }
  for (const [signal, number] of Object.entries(numbers))
    process.on(signal, () => {
      if (endingSince === null || clock.now() - endingSince <= passedOnWithin) return begin()
      process.stdout.write('It ends at once, calls and all.\n')
      process.exit(128 + number)
    })
  if (isOfNpm) watchParent(clock, begin)
}

/** Nobody may be there to read what is printed, or no room for it: that ends nothing. Before the first word. */
export function printInAnyCase(): void {
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
}

/** A process whose parent has ended belongs to another one. */
function watchParent(clock: Clock, gone: () => void): void {
  const parent = process.ppid
  const look = (): void => {
    if (process.ppid !== parent) return gone()
    clock.after(lookEvery, look)
  }
  look()
}
