/** Owns the folder of results: one folder for each suite that was run, named by its time, the newest ones only. */
import { access, constants, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { orCannot } from '../cannot.ts'
import { resultsVersion, type Results } from './results.ts'

const mostKept = 50
const nameShape = /^\d{4}-\d{2}-\d{2}T[\d-]+Z$/

/** The newest one; null: there is none that this version reads. */
export async function readLastResults(folder: string): Promise<Results | null> {
  for (const name of (await suitesIn(folder)).toReversed()) {
    const text = await readFile(path.join(folder, name, 'results.json'), 'utf8').catch(() => null)
    const results = text === null ? null : parsed(text)
    if (results) return results
  }
  return null
}

function parsed(text: string): Results | null {
  try {
    const results = JSON.parse(text) as Results
    return results.version === resultsVersion ? results : null
  } catch {
    // A file that was cut, by a full disk for one: the one before it counts.
    return null
  }
}

/** It is there, or can be made. */
export const makeResultsFolder = (folder: string): Promise<unknown> =>
  orCannot(`--folder ${folder}`, async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await access(folder, constants.W_OK)
  })

/** Where they are, for this user only: they have what callers and agents said. */
export async function writeResults(folder: string, results: Results, report: string): Promise<string> {
  const own = path.join(folder, results.at.replaceAll(/[:.]/g, '-'))
  await mkdir(own, { recursive: true, mode: 0o700 })
  await writeFile(path.join(own, 'results.json'), `${JSON.stringify(results, null, 2)}\n`, { mode: 0o600 })
  await writeFile(path.join(own, 'report.html'), report, { mode: 0o600 })
  const names = await suitesIn(folder)
  for (const name of names.slice(0, -mostKept)) await rm(path.join(folder, name), { recursive: true, force: true })
  return own
}

/** From the oldest on. */
async function suitesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  return names.filter((name) => nameShape.test(name)).toSorted()
}
