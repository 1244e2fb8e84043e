/**
 * Owns the transcription of utterances while they are spoken, beside the one of whole utterances: one WebSocket per call, where the server has one.
 * What does not come from it in time comes from the whole utterance, so nothing depends on it.
 */
import type { Clock } from '../../../model/clock.ts'
import { transcriptionLanguageOf } from '../hosted/transcription-language.ts'
import type { Notices } from '../notices.ts'
import type { EndpointAddress } from './endpoint.ts'
import { openStream, type OpenStream } from './open-stream.ts'
import { createSpokenStream, type OpenUtterance, type SpokenStream } from './spoken-stream.ts'
import type { StreamNews } from './stream-dialect.ts'

export type TranscriptionStream = {
  /** Null: there is no stream just now. `onText`: what is understood so far, all of it each time. */
  begin(onText: (text: string) => void): SpokenStream | null
  /** Idempotent. */
  close(): void
}

/** `language` is BCP 47. It connects by itself. */
export type OpenTranscriptionStream = (language: string) => TranscriptionStream

type Deps = { readonly address: EndpointAddress; readonly clock: Clock; readonly tellOnce: Notices }

/** A server without a stream, or whose stream failed, is not asked for one again for so long. */
const absentFor = 5 * 60_000

export function createTranscriptionStreams({ address, clock, tellOnce }: Deps): OpenTranscriptionStream {
  let absentUntil = 0
  const absent = (): void => {
    absentUntil = clock.now() + absentFor
  }
  return (language) => {
    const ending = new AbortController()
    const { signal } = ending
    let stream: OpenStream | null = null
    let utterances: readonly OpenUtterance[] = []

    const stop = (): void => {
      stream?.socket.close()
      stream = null
      utterances.forEach((utterance) => utterance.settle(null))
    }
    const fail = (): void => {
      if (stream === null) return
      tellOnce('the transcription server does not transcribe speech as it comes, although it offers to')
      absent()
      stop()
    }
    const onNews = (news: StreamNews): void => {
      if (news.kind === 'failed') return fail()
      const utterance = utteranceOf(utterances, news)
      if (news.kind === 'text') utterance?.grow(news.text)
      if (news.kind === 'final') utterance?.settle(news.text)
      if (news.kind === 'unheard') utterance?.settle(null)
    }
    const connect = async (): Promise<void> => {
      const code = transcriptionLanguageOf(language)
      const opened = await openStream({ address, clock, language: code, signal, onNews, onLost: stop })
      if (signal.aborted) return opened?.socket.close()
      if (opened === null) return absent()
      stream = opened
    }
    if (clock.now() >= absentUntil) void connect()
    return {
      begin(onText) {
        utterances = utterances.filter(({ isOver }) => !isOver())
        if (stream === null || (stream.dialect.isOneByOne && utterances.length > 0)) return null
        const utterance = createSpokenStream({ ...stream, clock, onText, onLate: fail })
        utterances = [...utterances, utterance]
        return utterance
      },
      close() {
        ending.abort()
        stop()
      },
    }
  }
}

/** Its own, or the oldest that has no name yet. */
function utteranceOf(utterances: readonly OpenUtterance[], news: StreamNews): OpenUtterance | undefined {
  if (!('itemId' in news)) return undefined
  const { itemId } = news
  const open = utterances.filter(({ isOver }) => !isOver())
  const named = open.find((utterance) => itemId !== null && utterance.itemId() === itemId)
  const found = named ?? open.find((utterance) => utterance.itemId() === null)
  if (itemId !== null) found?.name(itemId)
  return found
}
