/** Owns the commands of workers and their scripts. */
import path from 'node:path'
import { flawOf } from '../../model/json.ts'
import { Problem } from '../../model/problem.ts'
import { WorkerRequest } from '../../model/worker-resource.ts'
import { deleteWorker } from '../../store/delete-worker.ts'
import { createDocument, scriptTagOf } from '../../store/documents.ts'
import { createWorker, findWorker, listWorkers } from '../../store/workers.ts'
import { newId } from '../../app/core.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { accountOf, checked, idOf, readText, required, textOf, type Commands } from './command.ts'

export const workerCommands: Commands = {
  'worker list': {
    usage: 'worker list <accountId>',
    async runOn({ sql, print }, [account]) {
      for (const { id, language, name } of await listWorkers(sql, await accountOf(sql, account)))
        print(`${id}  ${language}  ${name}`)
      return 0
    },
  },
  'worker create': {
    usage: 'worker create <accountId> <name> [--language en] [--inbound <number>] [--outbound <number>]',
    options: { language: { type: 'string' }, inbound: { type: 'string' }, outbound: { type: 'string' } },
    async runOn({ sql, print }, [account, name], options) {
      const request = checked(WorkerRequest, {
        name: required(name, 'name'),
        language: textOf(options, 'language') ?? 'en',
        inboundPhoneNumber: textOf(options, 'inbound'),
        outboundPhoneNumber: textOf(options, 'outbound'),
      })
      const worker = { ...request, accountId: await accountOf(sql, account), newId, now: Date.now() }
      print((await createWorker(sql, worker)).id)
      return 0
    },
  },
  'worker delete': {
    usage: 'worker delete <accountId> <workerId>',
    async runOn({ sql, print }, [account, worker]) {
      const [accountId, workerId] = [await accountOf(sql, account), idOf<'worker'>(worker, 'workerId')]
      const deleted = await deleteWorker(sql, { accountId, workerId, now: Date.now() })
      print(deleted ? 'deleted' : 'the account has no such worker')
      return deleted ? 0 : 1
    },
  },
  'script add': {
    usage: 'script add <accountId> <workerId> <file> [--direction inbound|outbound] [--force]',
    options: { direction: { type: 'string' }, force: { type: 'boolean' } },
    async runOn({ sql, print }, [account, worker, given], options) {
      const direction = textOf(options, 'direction') ?? 'inbound'
      if (direction !== 'inbound' && direction !== 'outbound')
        throw new Problem('VALIDATION_FAILED', '--direction must be inbound or outbound')
      const [accountId, workerId] = [await accountOf(sql, account), idOf<'worker'>(worker, 'workerId')]
      const file = required(given, 'file')
      if (!(await findWorker(sql, accountId, workerId)))
        throw new Problem('NOT_FOUND', 'the account has no such worker')
      const fileName = path.basename(file)
      const content = await readText(file)
      if (content.trim() === '' || flawOf(content))
        throw new Problem('VALIDATION_FAILED', `${file} is not a script: it is empty or holds U+0000`)
      if (options['force'] !== true) await refuseWrong(file, content)
      const script = { accountId, title: fileName, fileName, content }
      const links = { status: 'completed', workerIds: [workerId], tagKeys: [scriptTagOf(direction)] } as const
      print(await createDocument(sql, { ...script, ...links, newId, now: Date.now() }))
      return 0
    },
  },
}

/** The embedded engine would refuse the call; a hosted one reads whatever there is. */
async function refuseWrong(file: string, content: string): Promise<void> {
  const check = await openScriptCheck()
  const errors = check(content).map(({ line, message }) => ({ path: `line ${line}`, message }))
  if (errors.length === 0) return
  const message = `${file} has errors and is not stored (for hosted engines alone: --force):`
  throw new Problem('VALIDATION_FAILED', message, errors)
}
