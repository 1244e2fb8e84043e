/**
 * Owns the hands of the clock of one process of a run: loaded in front of the service (`node --import`), it moves what `Date.now` says, and with it
 * the clock that all parts are given, by what the file CLOCK_STEP_FILE says when SIGUSR2 comes. Timers go on as they were, as with a real step.
 */
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'
import { readEnvironment } from '../../app/config.ts'

const { CLOCK_STEP_FILE: file } = readEnvironment()

if (isMainThread && file !== undefined) {
  const real = Date.now.bind(Date)
  let stepMs = 0
  Date.now = () => real() + stepMs
  process.on('SIGUSR2', () => (stepMs = Number(readFileSync(file, 'utf8'))))
}
