/** Owns the commands of documents. What is added is read by the service, as soon as one runs. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { typeOfFile, UploadRequest } from '../../model/document.ts'
import { Problem } from '../../model/problem.ts'
import { listDocuments, uploadDocument } from '../../store/documents.ts'
import { newId } from '../../app/core.ts'
import { accountOf, checked, required, textOf, textsOf, type Commands } from './command.ts'

export const documentCommands: Commands = {
  'document list': {
    usage: 'document list <accountId>',
    async runOn({ sql, print }, [account]) {
      for (const { id, type, status, failedReason, isActive, title } of await listDocuments(
        sql,
        await accountOf(sql, account),
        {},
      ))
        print(`${id}  ${type}  ${isActive ? (failedReason ?? status) : 'off'}  ${title}`)
      return 0
    },
  },
  'document add': {
    usage: 'document add <accountId> <file> [--title <title>] [--worker <workerId>]… [--tag <tag>]…',
    options: {
      title: { type: 'string' },
      worker: { type: 'string', multiple: true },
      tag: { type: 'string', multiple: true },
    },
    async runOn({ sql, print }, [account, given], options) {
      const file = required(given, 'file')
      const fileName = path.basename(file)
      const type = typeOfFile(fileName)
      if (type === null)
        throw new Problem('VALIDATION_FAILED', `${file} must end with .txt, .md, .mdoc, .html, .docx or .pdf`)
      const request = checked(UploadRequest, {
        title: textOf(options, 'title') ?? fileName,
        workerIds: textsOf(options, 'worker'),
        tagKeys: textsOf(options, 'tag'),
      })
      const wanted = { accountId: await accountOf(sql, account), request, newId, now: Date.now() }
      print((await uploadDocument(sql, { fileName, type, bytes: await bytesOf(file) }, wanted)).id)
      return 0
    },
  },
}

async function bytesOf(file: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await readFile(file))
  } catch (error) {
    throw new Problem('VALIDATION_FAILED', `${file} cannot be read: ${(error as Error).message}`)
  }
}
