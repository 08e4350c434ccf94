import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common'
import { createThrottler, memoryStore, WeirError } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { expect, test } from 'vitest'

class Kept extends ConsoleLogger {
  readonly lines: { messages: unknown[]; context: string | undefined; level: string | undefined }[] = []

  protected override printMessages(messages: unknown[], context?: string, level?: string): void {
    this.lines.push({ messages, context, level })
  }
}

test.each<[string, (kept: Kept) => LoggerService]>([
  ['a logger', (kept) => kept],
  [
    'the logger that the application has',
    (kept) => {
      Logger.overrideLogger(kept)
      return new Logger()
    },
  ],
])('%s of NestJS is told of warnings, in a context of their own', async (_, loggerOf) => {
  const kept = new Kept()
  const throttler = createThrottler({ policies: [{ limit: 1, interval: '1m' }], store: memoryStore(), logger: loggerOf(kept) })
  adapterOf(throttler).warn(new WeirError('WEIR_INVALID_KEY', 'no key'))
  await throttler.close()
  expect(kept.lines).toEqual([
    {
      messages: [expect.stringMatching(/^weir: no key See \S+\.md \(node: \w+, code: WEIR_INVALID_KEY\)$/)],
      context: 'Weir',
      level: 'warn',
    },
  ])
})
