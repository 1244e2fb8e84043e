/** Owns a collector that takes OTLP over HTTP in JSON and keeps the spans it was sent. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { z } from 'zod'

/** Ids are hexadecimal, times are nanoseconds in text, an enum is a number: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
const Value = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ intValue: z.union([z.number(), z.string()]) }),
  z.strictObject({ doubleValue: z.number() }),
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ arrayValue: z.looseObject({}) }),
])
const Attributes = z.array(z.strictObject({ key: z.string(), value: Value }))
const OtlpSpan = z.object({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string().regex(/^\d+$/),
  endTimeUnixNano: z.string().regex(/^\d+$/),
  attributes: Attributes,
  status: z.looseObject({ code: z.number().optional() }),
})
const Request = z.strictObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: Attributes }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(OtlpSpan) })),
    }),
  ),
})

export type CollectedSpan = Omit<z.infer<typeof OtlpSpan>, 'attributes'> & {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly service: Readonly<Record<string, unknown>>
}

export type OtlpCollector = {
  readonly url: string
  readonly spans: CollectedSpan[]
  readonly headers: IncomingHttpHeaders[]
  /** What it answers from now on; null: nothing. */
  answer(status: number | null): void
}

export async function openOtlpCollector(t: Pick<Test, 'teardown'>): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = []
  const headers: IncomingHttpHeaders[] = []
  let status: number | null = 200
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (status === null) return
      if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json') {
        response.writeHead(404).end()
        return
      }
      headers.push(request.headers)
      if (status === 200) spans.push(...spansOf(Buffer.concat(chunks).toString('utf8')))
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    answer: (given) => void (status = given),
  }
}

const spansOf = (body: string): CollectedSpan[] =>
  Request.parse(JSON.parse(body)).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({
        ...span,
        attributes: fieldsOf(span.attributes),
        service: fieldsOf(resource.attributes),
      })),
    ),
  )

const fieldsOf = (attributes: z.infer<typeof Attributes>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
