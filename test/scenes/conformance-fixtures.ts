/**
 * Owns what the official conformance scenarios call by name: tools, prompts and resources that answer as each scenario says. They are registered
 * on a server beside its own tools, so that the scenarios meet the endpoint, its guards and its protocol as clients do.
 */
import { setTimeout as pause } from 'node:timers/promises'
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  completable,
  inputRequired,
  inputResponse,
  ResourceTemplate,
  type CallToolResult,
  type ClientCapabilities,
  type InputRequests,
  type McpServer,
  type ServerContext,
  type ServerNotifier,
} from '@modelcontextprotocol/server'
import { z } from 'zod'

/** One red pixel; eight bytes of head and no sound. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

const betweenSteps = 50

export type ConformanceParts = {
  /** Tells open subscriptions of a changed list. */
  readonly notify: Pick<ServerNotifier, 'toolsChanged' | 'promptsChanged'>
  /** Seals a state as the server's own `requestState.verify` opens it. */
  readonly mint: (state: string, context: ServerContext) => Promise<string>
}

type Answer = CallToolResult | ReturnType<typeof inputRequired>
type Run = (context: ServerContext) => Answer | Promise<Answer>

const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })

const contents = {
  text: { type: 'text', text: 'This is a simple text response for testing.' },
  image: { type: 'image', data: png, mimeType: 'image/png' },
  audio: { type: 'audio', data: wav, mimeType: 'audio/wav' },
  resource: {
    type: 'resource',
    resource: {
      uri: 'test://embedded-resource',
      mimeType: 'text/plain',
      text: 'This is an embedded resource content.',
    },
  },
  mixedText: { type: 'text', text: 'Multiple content types test:' },
  mixedResource: {
    type: 'resource',
    resource: {
      uri: 'test://mixed-content-resource',
      mimeType: 'application/json',
      text: JSON.stringify({ test: 'data', value: 123 }),
    },
  },
} as const

const asked = {
  name: inputRequired.elicit({ message: 'What is your name?', requestedSchema: z.object({ name: z.string() }) }),
  confirmation: inputRequired.elicit({ message: 'Please confirm', requestedSchema: z.object({ ok: z.boolean() }) }),
  context: inputRequired.elicit({
    message: 'What context should the prompt use?',
    requestedSchema: z.object({ context: z.string() }),
  }),
  roots: inputRequired.listRoots(),
}

const askModel = (text: string): InputRequests[string] =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 100 })

const has = ({ mcpReq }: ServerContext, ...keys: string[]): boolean =>
  keys.every((key) => inputResponse(mcpReq.inputResponses, key).kind !== 'missing')

function declaredBy({ mcpReq }: ServerContext): ClientCapabilities {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {}
  return (envelope[CLIENT_CAPABILITIES_META_KEY] ?? {}) as ClientCapabilities
}

/** Asks until every key is answered. */
const asking =
  (inputRequests: InputRequests, done: Run): Run =>
  (context) =>
    has(context, ...Object.keys(inputRequests)) ? done(context) : inputRequired({ inputRequests })

export function addConformanceFixtures(server: McpServer, parts: ConformanceParts): void {
  const tools = { ...plainTools(parts), ...askingTools(), ...statefulTools(parts) }
  for (const [name, run] of Object.entries(tools))
    server.registerTool(name, { description: `Answers as the conformance scenarios ask of ${name}.` }, run)
  addPrompts(server)
  addResources(server)
}

function plainTools({ notify }: ConformanceParts): Record<string, Run> {
  return {
    test_simple_text: () => ({ content: [contents.text] }),
    test_image_content: () => ({ content: [contents.image] }),
    test_audio_content: () => ({ content: [contents.audio] }),
    test_embedded_resource: () => ({ content: [contents.resource] }),
    test_multiple_content_types: () => ({ content: [contents.mixedText, contents.image, contents.mixedResource] }),
    test_error_handling() {
      throw new Error('This tool intentionally returns an error for testing')
    },
    async test_tool_with_progress({ mcpReq }) {
      const progressToken = mcpReq._meta?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined)
          await mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress, total: 100 },
          })
        await pause(betweenSteps)
      }
      return said('All steps are done.')
    },
    async test_logging_tool({ mcpReq }) {
      await mcpReq.log('info', 'A line that only those see who asked for lines.')
      return said('Logged.')
    },
    test_trigger_tool_change() {
      notify.toolsChanged()
      return said('The list of tools has changed.')
    },
    test_trigger_prompt_change() {
      notify.promptsChanged()
      return said('The list of prompts has changed.')
    },
  }
}

function askingTools(): Record<string, Run> {
  const nameAsked: Run = (context) => {
    const given = acceptedContent(context.mcpReq.inputResponses, 'user_name', z.object({ name: z.string() }))
    return given ? said(`Hello, ${given.name}!`) : inputRequired({ inputRequests: { user_name: asked.name } })
  }
  return {
    test_input_required_result_elicitation: nameAsked,
    test_streaming_elicitation: nameAsked,
    test_missing_capability: asking({ greeting: askModel('Say hello.') }, () => said('Greeted.')),
    test_input_required_result_sampling: asking(
      { capital_question: askModel('What is the capital of France?') },
      (context) => said(JSON.stringify(inputResponse(context.mcpReq.inputResponses, 'capital_question'))),
    ),
    test_input_required_result_list_roots: asking({ client_roots: asked.roots }, (context) =>
      said(JSON.stringify(inputResponse(context.mcpReq.inputResponses, 'client_roots'))),
    ),
    test_input_required_result_capabilities(context) {
      const { sampling, elicitation } = declaredBy(context)
      const inputRequests = {
        ...(sampling && { greeting: askModel('Say hello.') }),
        ...(elicitation && { user_name: asked.name }),
      }
      return has(context, ...Object.keys(inputRequests)) ? said('Answered.') : inputRequired({ inputRequests })
    },
  }
}

function statefulTools({ mint }: ConformanceParts): Record<string, Run> {
  const step = (message: string) =>
    inputRequired.elicit({ message, requestedSchema: z.object({ [message]: z.string() }) })
  const confirming: Run = async (context) => {
    if (context.mcpReq.requestState<string>() === 'asked' && has(context, 'confirm')) return said('state-ok')
    return inputRequired({
      inputRequests: { confirm: asked.confirmation },
      requestState: await mint('asked', context),
    })
  }
  return {
    test_input_required_result_request_state: confirming,
    test_input_required_result_tampered_state: confirming,
    async test_input_required_result_multiple_inputs(context) {
      const inputRequests = {
        user_name: asked.name,
        greeting: askModel('Generate a greeting'),
        client_roots: asked.roots,
      }
      if (context.mcpReq.requestState<string>() === 'many' && has(context, ...Object.keys(inputRequests)))
        return said('All answers are there.')
      return inputRequired({ inputRequests, requestState: await mint('many', context) })
    },
    async test_input_required_result_multi_round(context) {
      const state = context.mcpReq.requestState<string>()
      if (state === 'second' && has(context, 'step2')) return said('Both rounds are done.')
      if (state === 'first' && has(context, 'step1'))
        return inputRequired({
          inputRequests: { step2: step('color') },
          requestState: await mint('second', context),
        })
      return inputRequired({ inputRequests: { step1: step('name') }, requestState: await mint('first', context) })
    },
  }
}

function addPrompts(server: McpServer): void {
  const message = <Content>(content: Content) => ({ role: 'user' as const, content })
  const text = (words: string) => message({ type: 'text' as const, text: words })
  const described = { description: 'A prompt of the conformance scenarios.' }
  server.registerPrompt('test_simple_prompt', described, () => ({
    messages: [text('This is a simple prompt for testing.')],
  }))
  const places = completable(z.string(), (begun) => ['paris', 'park', 'party'].filter((word) => word.startsWith(begun)))
  server.registerPrompt(
    'test_prompt_with_arguments',
    { ...described, argsSchema: z.object({ arg1: places, arg2: z.string() }) },
    ({ arg1, arg2 }) => ({ messages: [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { ...described, argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => ({
      messages: [
        message({
          type: 'resource' as const,
          resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        }),
        text('Please process the embedded resource above.'),
      ],
    }),
  )
  server.registerPrompt('test_prompt_with_image', described, () => ({
    messages: [message(contents.image), text('Please analyze the image above.')],
  }))
  server.registerPrompt('test_input_required_result_prompt', described, (context) => {
    const given = acceptedContent(context.mcpReq.inputResponses, 'user_context', z.object({ context: z.string() }))
    if (!given) return inputRequired({ inputRequests: { user_context: asked.context } })
    return { messages: [text(`Use this context: ${given.context}`)] }
  })
}

function addResources(server: McpServer): void {
  const kept = (uri: string, mimeType: string, body: { text: string } | { blob: string }): void =>
    void server.registerResource(
      uri,
      uri,
      { description: 'A resource of the conformance scenarios.', mimeType },
      () => ({
        contents: [{ uri, mimeType, ...body }],
      }),
    )
  kept('test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' })
  kept('test://static-binary', 'image/png', { blob: png })
  server.registerResource(
    'test://template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'A template of the conformance scenarios.', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  )
}
