/** Owns what a start tells of itself while it goes on: a line for each stage when it is done, with the time since the start, and one for what takes long. */
import type { Cancel, Clock } from '../../model/clock.ts'

export type Stages = {
  /** This is what is being done now: told when it takes longer than people expect. */
  begin(name: string): void
  /** It is done. */
  done(name: string, what: string): void
  /** Nothing more is waited for. Idempotent. */
  end(): void
}

const expectedWithin = 4_000
const nameWidth = 10

export function createStages(deps: {
  readonly clock: Clock
  readonly began: number
  print(line: string): void
}): Stages {
  const { clock, began, print } = deps
  let wait: Cancel = () => undefined

  const line = (name: string, what: string): void => {
    const seconds = ((clock.now() - began) / 1000).toFixed(1).padStart(5)
    print(`  ${seconds} s  ${name.padEnd(nameWidth)} ${what}`)
  }
  const expect = (name: string): Cancel =>
    clock.after(expectedWithin, () => {
      line(name, 'is not there yet; waiting …')
      wait = expect(name)
    })
  return {
    begin(name) {
      wait()
      wait = expect(name)
    },
    done(name, what) {
      wait()
      line(name, what)
    },
    end: () => wait(),
  }
}
