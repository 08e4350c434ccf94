import { run } from '../runs/run.ts'
import { settingsOf } from '../settings/settings.ts'
import { buffersOf } from '../tape/tape.ts'
import type { Answer, Question } from './protocol.ts'

interface WorkerScope {
  onmessage: ((event: MessageEvent<Question>) => void) | null
  postMessage(answer: Answer, transfer?: ArrayBufferLike[]): void
}
const scope = globalThis as unknown as WorkerScope

scope.onmessage = ({ data: { id, settings, logs } }) => {
  run(settingsOf(settings.scene, settings.values), logs).then(
    (outcome) => scope.postMessage({ id, outcome }, 'tape' in outcome ? buffersOf(outcome.tape) : []),
    (error: unknown) => scope.postMessage({ id, error: error instanceof Error ? error.message : String(error) }),
  )
}
