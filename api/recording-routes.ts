/** Owns the download of recordings: signed links, ranges, HEAD. RFC 9110 sections 13.1 and 14. */
import { z } from '@hono/zod-openapi'
import { toId } from '../model/ids.ts'
import { notFound, Problem } from '../model/problem.ts'
import { soundTypes, type RecordingReader, type SoundForm } from '../model/recording-store.ts'
import { isWantedEtag, knowsEtag } from '../net/http/known-etag.ts'
import { byteRangeOf } from './byte-range.ts'
import type { Api, ApiDeps } from './deps.ts'
import { refusing } from './openapi.ts'
import { linkIsGood, recordingsPath } from './recording-link.ts'
import { renderProblem } from './render.ts'

export function addRecordingRoutes(app: Api, deps: ApiDeps): void {
  const { recordings, recordingUrlKey, formerRecordingUrlKeys = [], clock } = deps
  const keys = [recordingUrlKey, ...formerRecordingUrlKeys]
  describe(app)
  app.get(`${recordingsPath}/:accountId/:fileName`, async (c) => {
    const { expires = '', signature = '' } = c.req.query()
    const link = { path: c.req.path, expires, signature }
    if (!keys.some((key) => linkIsGood(key, link, clock.now())))
      throw new Problem('UNAUTHORIZED', 'The link is not valid, or not any more. Ask for a new one.')
    const { accountId, fileName } = c.req.param()
    const [name = '', form = ''] = fileName.split('.')
    const callId = isSound(form) ? toId<'call'>(name) : null
    const recording = callId && (await recordings.read(`${accountId}/${callId}.${form}`))
    if (!recording || !isSound(form)) throw notFound()
    return answer(c.req.raw, recording, { fileName, form }, c.env.requestId)
  })
}

const isSound = (form: string): form is SoundForm => Object.hasOwn(soundTypes, form)

type Named = { readonly fileName: string; readonly form: SoundForm }

function answer(request: Request, recording: RecordingReader, { fileName, form }: Named, requestId: string): Response {
  const { size } = recording
  // A finished recording never changes.
  const etag = `"${fileName}-${size}"`
  // In this order, and before the range is looked at: section 13.2.2.
  if (!isWantedEtag(request.headers.get('if-match'), etag)) throw new Problem('PRECONDITION_FAILED', anotherOne)
  if (knowsEtag(request.headers.get('if-none-match'), etag))
    return new Response(null, { status: 304, headers: { etag } })
  const headers = new Headers({
    'content-type': soundTypes[form],
    'content-disposition': `attachment; filename="${fileName}"`,
    'accept-ranges': 'bytes',
    etag,
  })
  const range = rangeOf(request, size, etag)
  if (range === 'unsatisfiable') return unsatisfiable(size, requestId)
  const { from, to } = range ?? { from: 0, to: size - 1 }
  headers.set('content-length', String(to - from + 1))
  if (range) headers.set('content-range', `bytes ${from}-${to}/${size}`)
  const silent = request.method === 'HEAD' || size === 0
  return new Response(silent ? null : recording.stream(from, to), { status: range ? 206 : 200, headers })
}

const anotherOne = 'The recording is another one than If-Match names.'

/** A range is for GET only, and only while the client continues the same file. */
function rangeOf(request: Request, size: number, etag: string) {
  const condition = request.headers.get('if-range')
  if (request.method !== 'GET' || (condition !== null && condition !== etag)) return null
  return byteRangeOf(request.headers.get('range') ?? undefined, size)
}

function unsatisfiable(size: number, requestId: string): Response {
  const problem = new Problem('RANGE_NOT_SATISFIABLE', `The recording has ${size} bytes.`)
  return renderProblem(problem, requestId, { 'content-range': `bytes */${size}` })
}

/** By hand: the router has no parameter that ends before `.wav`. */
function describe(app: Api): void {
  const audio = { 'audio/wav': { schema: { type: 'string', format: 'binary' } as const } }
  app.openAPIRegistry.registerPath({
    method: 'get',
    path: `${recordingsPath}/{accountId}/{callId}.wav`,
    security: [],
    tags: ['Recordings'],
    operationId: 'downloadRecording',
    summary: 'Download a recording by its link',
    description:
      'A link to the compressed copy ends with `.opus`, and its answers are `audio/ogg`; all else is the same.',
    ...refusing('UNAUTHORIZED', 'PRECONDITION_FAILED', 'RANGE_NOT_SATISFIABLE'),
    request: {
      params: z.object({ accountId: z.string(), callId: z.string() }),
      query: z.object({ expires: z.string(), signature: z.string() }),
    },
    responses: {
      200: { description: 'The recording.', content: audio },
      206: { description: 'A part of it.', content: audio },
      304: { description: 'It is what If-None-Match names.' },
    },
  })
}
