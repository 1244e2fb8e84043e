/** Owns Ctrl-C of a program that has calls: the first one ends them in order, the second one is from somebody who does not want to wait. */
import process from 'node:process'

export function endingSignal(print: (text: string) => void): AbortSignal {
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      if (ending.signal.aborted) process.exit(130)
      print('\nCalls are ended …')
      ending.abort()
    })
  return ending.signal
}
