/**
 * Owns reading the SIP message of an app. It is a draft: Via and more are still missing, and its Content-Length counts characters in
 * place of bytes, so that the body is simply the rest.
 */
import { headerNameOf } from '../message/header-names.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'

const emptyLine = Buffer.from('\r\n\r\n')

/** Null: it cannot be one. */
export function readDraft(bytes: Buffer): SipRequest | SipResponse | null {
  const end = bytes.indexOf(emptyLine)
  const [start = '', ...lines] = bytes.toString('utf8', 0, end === -1 ? bytes.length : end).split(/\r\n(?![ \t])/)
  const fields = lines.filter((line) => line !== '').map(fieldOf)
  const headers = fields.flatMap((field) => field ?? [])
  const body = end === -1 ? new Uint8Array() : bytes.subarray(end + emptyLine.length)
  return headers.length === fields.length ? messageOf(start, headers, body) : null
}

function messageOf(start: string, headers: HeaderField[], body: Uint8Array): SipRequest | SipResponse | null {
  const [, status, reason = ''] = /^SIP\/2\.0 ([1-6]\d\d)(?: (.*))?$/.exec(start) ?? []
  if (status !== undefined) return { kind: 'response', status: Number(status), reason: reason.trim(), headers, body }
  const [, method, uri] = /^([A-Z]{1,32}) (\S+) SIP\/2\.0$/.exec(start) ?? []
  return method !== undefined && uri !== undefined ? { kind: 'request', method, uri, headers, body } : null
}

/** A line break inside a value would become a header of its own on the wire. */
function fieldOf(line: string): HeaderField | null {
  const [, name, value] = /^([A-Za-z0-9\-.!%*_+`'~]+)[ \t]*:([\s\S]*)$/.exec(line) ?? []
  if (name === undefined || value === undefined) return null
  return { name: headerNameOf(name), value: value.replace(/[\r\n\0]+[ \t]*/g, ' ').trim() }
}
