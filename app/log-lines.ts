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
  const target = unblocked(fd)
  let waiting: string[] = []
  let length = 0
  let lost = 0
  let rest: Buffer = nothing
  /** Something is being written, or will be tried again. */
  let isUnderWay = false
  /** The system has it, and does it before the process is gone. */
  let isGiven = false
  let wait = shortestWait

  const take = (): Buffer => {
    if (lost > 0) waiting.push(lostLine(lost))
    const taken = waiting.length > 0 ? Buffer.from(waiting.join('')) : nothing
    ;[waiting, length, lost] = [[], 0, 0]
    return taken
  }
  const writeRest = (): void => {
    if (rest.length === 0) rest = take()
    isUnderWay = isGiven = rest.length > 0
    if (isGiven) writeTo(target, rest, 0, rest.length, null, written)
  }
  const written = (error: Error | null, bytes: number): void => {
    isGiven = false
    if (error) {
      setTimeout(writeRest, wait).unref()
      wait = Math.min(longestWait, wait * 2)
      return
    }
    wait = shortestWait
    rest = rest.subarray(bytes)
    writeRest()
  }
  process.once('exit', () => {
    if (!isGiven) writeAtEnd(target, rest)
    writeAtEnd(target, take())
  })
  return {
    write(line) {
      if (length + line.length > maxWaiting) return void lost++
      waiting.push(line)
      length += line.length
      if (!isUnderWay) writeRest()
    },
  }
}

/** In the shape of the others. */
const lostLine = (lines: number): string =>
  `${JSON.stringify({ level: 'warn', time: Date.now(), pid: process.pid, lines, msg: 'lines of the log could not be written and are lost' })}\n`

/** A pipe that is full holds up who writes to it, and the end of the process with it: here it is opened once more, and says so instead. */
function unblocked(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    // Not this system's way, or not this user's pipe.
    return fd
  }
}

function writeAtEnd(fd: number, bytes: Buffer): void {
  const nobody = new Int32Array(new SharedArrayBuffer(4))
  let left = bytes
  for (let waited = 0; left.length > 0 && waited < patienceAtEnd;)
    try {
      left = left.subarray(writeSync(fd, left))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      Atomics.wait(nobody, 0, 0, lookAtEnd)
      waited += lookAtEnd
    }
}
