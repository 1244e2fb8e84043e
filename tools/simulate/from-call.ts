/** Owns `npm run simulate -- from-call <callId>`: a scenario of a finished call as a file, with the caller's sound beside it. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { stringify } from 'yaml'
import { Cannot, orCannot } from '../cannot.ts'
import { openDeployment } from './deployment.ts'
import { callInLog, callOverRest } from './finished-call.ts'
import { parseScenario } from './read-scenario.ts'
import { scenarioOf } from './scenario-of-call.ts'
import { writeSound } from './sound-file.ts'

export type FromCallWish = {
  readonly callId: string
  /** Null: the database and the recordings of this machine. */
  readonly deployment: { readonly url: string; readonly key: string } | null
  readonly folder: string
  /** False: a voice of ours says the caller's words. */
  readonly keepsVoice: boolean
}

/** The file. Throws for a call that is not over, or has no caller's words. */
export async function writeScenarioOf({ callId, deployment, folder, keepsVoice }: FromCallWish): Promise<string> {
  const finished = deployment ? await callOverRest(await openDeployment(deployment), callId) : await callInLog(callId)
  const { call, workerName: worker } = finished
  if (call.status !== 'completed') throw new Cannot(`the call ${callId} is not over, or was never answered`)
  const name = `As in call ${callId}`
  const { scenario, sounds } = scenarioOf(finished, { name, worker, keepsVoice })
  const text = `# Made of a finished call: what its caller said, and what came of it.\n${stringify(scenario)}`
  const file = path.join(folder, `${callId}.yaml`)
  parseScenario(text, file)
  await orCannot(`--folder ${folder}`, () => mkdir(folder, { recursive: true, mode: 0o700 }))
  // What callers said is for this user only.
  await writeFile(file, text, { mode: 0o600 })
  for (const [soundName, samples] of sounds) await writeSound(path.join(folder, soundName), samples)
  return file
}
