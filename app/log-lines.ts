/**
 * Owns the way of log lines to a descriptor: a file whose disk may be full, a pipe that nobody may read, or is there to read no more. None of them may hold
 * up, grow or end the process. What cannot be written waits, up to a bound, and is tried again; further lines are lost, and how many is told once there is
 * room.
 */
import { constants, fstatSync, openSync, write as writeTo, writeSync } from 'node:fs'
import process from 'node:process'

export type LogLines = {
  /** Ends with its line feed. Never throws, never waits. */
  write(line: string): void
}

/** Characters. */
const maxWaiting = 4 << 20
/** Ms between two tries. */
const [shortestWait, longestWait] = [50, 1_000]
/** Ms that a process that ends waits for whoever reads its log. */
const patienceAtEnd = 500
const lookAtEnd = 20

const nothing = Buffer.alloc(0)

/** What is left is written when the process ends; a reader that does not read then is not waited for. */
export function createLogLines(fd: number): LogLines {
  const target = targetOf(fd)
  let waiting: string[] = []
  let length = 0
  let lost = 0
  let rest: Buffer = nothing
  /** Something is being written, or will be tried again. */
  let isUnderWay = false
  /** The system does it on a thread, before the process is gone: what the file was long before. Null: nothing is given to it. */
  let given: number | null = null
  let hasEnded = false
  let wait = shortestWait

  const take = (): Buffer => {
    if (lost > 0) waiting.push(lostLine(lost))
    const taken = waiting.length > 0 ? Buffer.from(waiting.join('')) : nothing
    ;[waiting, length, lost] = [[], 0, 0]
    return taken
  }
  const goOn = (): void => {
    isUnderWay = true
    if (target.kind === 'unblocked') setImmediate(writeRest)
    else writeRest()
  }
  const writeRest = (): void => {
    if (rest.length === 0) rest = take()
    isUnderWay = rest.length > 0
    if (!isUnderWay) return
    if (target.kind === 'unblocked') return writeNow()
    given = sizeOf(target)
    writeTo(target.fd, rest, 0, rest.length, null, written)
  }
  // A thread might do it only when the process ends, after the lines that came later.
  const writeNow = (): void => {
    try {
      written(null, writeSync(target.fd, rest))
    } catch (error) {
      written(error as Error, 0)
    }
  }
  const written = (error: Error | null, bytes: number): void => {
    given = null
    if (error) {
      setTimeout(writeRest, wait).unref()
      wait = Math.min(longestWait, wait * 2)
      return
    }
    wait = shortestWait
    rest = rest.subarray(bytes)
    goOn()
  }
  process.once('exit', () => {
    hasEnded = true
    const last = take()
    if (given === null) writeAtEnd(target.fd, rest)
    else if (last.length > 0) waitForThread(target, given + rest.length)
    writeAtEnd(target.fd, last)
  })
  return {
    write(line) {
      if (hasEnded) return writeAtEnd(target.fd, Buffer.from(line))
      if (length + line.length > maxWaiting) return void lost++
      waiting.push(line)
      length += line.length
      if (!isUnderWay) goOn()
    },
  }
}

/** In the shape of the others. */
const lostLine = (lines: number): string =>
  `${JSON.stringify({ level: 'warn', time: Date.now(), pid: process.pid, lines, msg: 'lines of the log could not be written and are lost' })}\n`

/** `unblocked`: it takes what it can at once. The others may hold up who writes to them, so that a thread does it. */
type Target = { readonly fd: number; readonly kind: 'unblocked' | 'file' | 'other' }

/** A pipe that is full holds up who writes to it, and the end of the process with it: here it is opened once more, and says so instead. */
function targetOf(fd: number): Target {
  try {
    const stat = fstatSync(fd)
    if (!stat.isFIFO()) return { fd, kind: stat.isFile() ? 'file' : 'other' }
    return { fd: openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK), kind: 'unblocked' }
  } catch {
    // Not this system's way, or not this user's pipe.
    return { fd, kind: 'other' }
  }
}

function sizeOf({ fd, kind }: Target): number {
  try {
    return kind === 'file' ? fstatSync(fd).size : 0
  } catch {
    return 0
  }
}

/** What comes later must not overtake what a thread still writes. Only a file shows when it has that; others get a moment. */
function waitForThread(target: Target, size: number): void {
  const patience = target.kind === 'file' ? patienceAtEnd : lookAtEnd
  for (let waited = 0; waited < patience && sizeOf(target) < size; waited += lookAtEnd) pauseAtEnd()
}

const nobody = new Int32Array(new SharedArrayBuffer(4))
const pauseAtEnd = (): void => void Atomics.wait(nobody, 0, 0, lookAtEnd)

function writeAtEnd(fd: number, bytes: Buffer): void {
  let left = bytes
  for (let waited = 0; left.length > 0 && waited < patienceAtEnd;)
    try {
      left = left.subarray(writeSync(fd, left))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      pauseAtEnd()
      waited += lookAtEnd
    }
}
