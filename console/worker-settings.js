/** Owns the settings of a worker: those that are changed often as fields, all of them as the JSON that the API has. */
import { h } from 'preact'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { Form } from './form.js'
import { Awaited, Section } from './parts.js'
import { go, home } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'
import { forgetWorkers } from './worker-names.js'

/** @typedef {import('./answers').Worker} Worker */
/** @typedef {import('./answers').WorkerConfig} WorkerConfig */

const providers = /** @type {const} */ ([
  ['', 'as the service has it'],
  ['embedded', 'embedded (offline)'],
  ['voice_provider_a', 'voice provider A'],
  ['voice_provider_b', 'voice provider B'],
  ['cascade', 'cascade'],
])

/** @param {{ worker: Worker, reload: () => void }} props */
export function WorkerSettings({ worker, reload }) {
  const { api, mayChange } = useHere()
  const address = `${api}/workers/${worker.id}`
  const loaded = useLoaded(`${address}/config`)
  const config = /** @type {WorkerConfig | null} */ (loaded.value)
  const save = async (/** @type {unknown} */ json) => {
    await ask(address, { method: 'PATCH', json })
    forgetWorkers(api)
    reload()
    loaded.reload()
  }
  if (config === null) return h(Awaited, loaded)
  return [
    h(Section, { id: 'who', title: 'Who it is' }, [h(Identity, { worker, save, disabled: !mayChange })]),
    h(Section, { id: 'how', title: 'How it talks' }, [h(Talk, { config, save, disabled: !mayChange })]),
    h('details', { class: 'card' }, [
      h('summary', null, h('h2', null, 'Everything, as JSON')),
      h(
        'p',
        { class: 'hint' },
        'With defaults filled in. What is left out of a change stays; null takes a value away.',
      ),
      h(Raw, { config, save, disabled: !mayChange }),
    ]),
    mayChange &&
      h(
        'div',
        { class: 'actions' },
        h(
          AskedButton,
          {
            label: 'Delete this worker',
            title: `Delete ${worker.name}?`,
            action: 'Delete it',
            run: async () => {
              await ask(address, { method: 'DELETE' })
              forgetWorkers(api)
              go(`${home}/workers`)
            },
          },
          'Its calls and documents stay; nobody answers under its number any more.',
        ),
      ),
  ]
}

/** @typedef {{ save: (json: unknown) => Promise<void>, disabled: boolean }} Saving */

/** @param {Saving & { worker: Worker }} props */
function Identity({ worker, save, disabled }) {
  const orNull = (/** @type {string | undefined} */ text) =>
    text === undefined || text.trim() === '' ? null : text.trim()
  return h(Form, {
    action: 'Save',
    done: 'Saved.',
    disabled,
    fields: [
      { name: 'name', label: 'Name', value: worker.name, required: true },
      { name: 'language', label: 'Language', value: worker.language, required: true },
      { name: 'inboundPhoneNumber', label: 'Called at', value: worker.inboundPhoneNumber ?? '' },
      { name: 'outboundPhoneNumber', label: 'Calls as', value: worker.outboundPhoneNumber ?? '' },
      {
        name: 'maxConcurrentCalls',
        label: 'Calls at once',
        kind: 'number',
        value: String(worker.maxConcurrentCalls ?? ''),
        hint: 'Empty: as many as the account may',
      },
      { name: 'isActive', label: 'Takes calls', kind: 'checkbox', checked: worker.isActive },
    ],
    save: ({ fields, checks }) =>
      save({
        name: fields['name'],
        language: fields['language'],
        inboundPhoneNumber: orNull(fields['inboundPhoneNumber']),
        outboundPhoneNumber: orNull(fields['outboundPhoneNumber']),
        maxConcurrentCalls: fields['maxConcurrentCalls'] ? Number(fields['maxConcurrentCalls']) : null,
        isActive: checks['isActive'],
      }),
  })
}

/** @param {Saving & { config: WorkerConfig }} props */
function Talk({ config, save, disabled }) {
  return h(Form, {
    action: 'Save',
    done: 'Saved. Calls that begin from now on have it.',
    disabled,
    fields: [
      {
        name: 'llmProvider',
        label: 'Voice engine',
        kind: 'choice',
        value: config.llmProvider ?? '',
        options: providers,
      },
      { name: 'voiceId', label: 'Voice', value: config.voiceId ?? '' },
      { name: 'ringTimeout', label: 'Rings for (s)', kind: 'number', value: String(config.ringTimeout ?? '') },
      {
        name: 'firstSpeechTimeout',
        label: 'Waits for a first word (s)',
        kind: 'number',
        value: String(config.firstSpeechTimeout ?? ''),
      },
      {
        name: 'recordingChannelMode',
        label: 'Recording',
        kind: 'choice',
        value: config.recordingChannelMode ?? 'mixed',
        options: [
          ['mixed', 'both in one channel'],
          ['split', 'a channel for each'],
        ],
      },
      { name: 'recordingEnabled', label: 'Record calls', kind: 'checkbox', checked: config.recordingEnabled !== false },
    ],
    save: ({ fields, checks }) =>
      save({
        config: {
          llmProvider: fields['llmProvider'] || null,
          voiceId: fields['voiceId'] || null,
          ringTimeout: fields['ringTimeout'] ? Number(fields['ringTimeout']) : null,
          firstSpeechTimeout: fields['firstSpeechTimeout'] ? Number(fields['firstSpeechTimeout']) : null,
          recordingChannelMode: fields['recordingChannelMode'],
          recordingEnabled: checks['recordingEnabled'],
        },
      }),
  })
}

/** @param {Saving & { config: WorkerConfig }} props */
function Raw({ config, save, disabled }) {
  const { workerId: _worker, accountId: _account, language: _language, ...own } = config
  return h(Form, {
    action: 'Save all of it',
    done: 'Saved.',
    disabled,
    fields: [
      { name: 'config', label: 'Configuration', kind: 'textarea', rows: 18, value: JSON.stringify(own, null, 2) },
    ],
    save: async ({ fields }) => {
      let json
      try {
        json = JSON.parse(fields['config'] ?? '')
      } catch (error) {
        throw new Error(`This is no JSON: ${error instanceof Error ? error.message : ''}`)
      }
      await save({ config: json })
    },
  })
}
