import assert from 'node:assert/strict'
import { createThrottler } from '@weir/core'
import { paths } from '@weir/core/http'
import type { AdapterCase } from './context.ts'

/** Hostile input and failing functions. None of them may break a request. */
export const robustnessCases: readonly AdapterCase[] = [
  {
    title: 'answers hostile targets and headers without an error of its own',
    async run(context) {
      const client = await context.start({ ...context.limit(1000), key: ['route', 'ip', { header: 'x-key' }], match: paths('/*any') })
      const targets = [
        '/%',
        '/%zz',
        '/%00',
        '/..',
        '/../../etc/passwd',
        `/${'a/'.repeat(3000)}`,
        `/${'x'.repeat(8000)}`,
        '/\u00ff\u00fe',
        '/?',
        '/?%',
        '*',
        '//',
        '/\\',
        '/__proto__/constructor',
        '/a;b=c',
        '/{}|^`',
      ]
      for (const target of targets) assert.ok((await client.send(target)).status < 500, target.slice(0, 40))
      for (const value of ['x'.repeat(8000), '\u00ff', '|\\|', '__proto__']) {
        assert.equal((await client.send('/', { headers: { 'x-key': value, accept: value } })).status, 200)
      }
      assert.deepEqual(client.warnings, [])
    },
  },
  {
    title: 'lets requests pass when its throttler is closed',
    async run(context) {
      const client = await context.start(context.limit(1))
      await client.throttlers[0]?.close()
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 200])
      assert.equal(client.warnings.length, 1)
    },
  },
  {
    title: 'goes on when a function of the options throws',
    async run(context) {
      const boom = () => {
        throw new Error('boom')
      }
      const options = { skip: boom, enabled: boom, allow: boom, deny: boom, cost: boom, match: boom, onRejected: boom, message: boom }
      const client = await context.start({ ...context.limit(2), ...options })
      assert.deepEqual(await client.statuses(['/', '/', '/', '/']), [200, 200, 429, 429])
      assert.equal(client.warnings.length, Object.keys(options).length)
    },
  },
  {
    title: 'goes on when requestWasSuccessful throws',
    async run(context) {
      const client = await context.start({
        ...context.limit(2),
        skipFailedRequests: true,
        requestWasSuccessful: () => {
          throw new Error('boom')
        },
      })
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 429])
    },
  },
  {
    title: 'rejects options that can not be used, before it starts',
    async run(context) {
      const rejects = (options: object, code: string) => assert.rejects(() => context.start(options), { code })
      await rejects({ key: 'ip', limit: 0, interval: '1m' }, 'WEIR_INVALID_OPTION')
      await rejects({ key: 'ip', limit: 10 }, 'WEIR_MISSING_OPTION')
      await rejects({ limit: 10, interval: '1m', key: 'user' }, 'WEIR_INVALID_OPTION')
      await rejects({ limit: 10, interval: '1m', key: 'ip', match: '/login' }, 'WEIR_INVALID_OPTION')
      await rejects({ limit: 10, interval: '1m', key: 'ip', windowMs: 60_000 }, 'WEIR_UNKNOWN_OPTION')
      await rejects({ policies: [] }, 'WEIR_INVALID_OPTION')
    },
  },
  {
    title: 'rejects a policy without a key, also one of a throttler that was made before, or of an update',
    async run(context) {
      const { key: _key, ...keyless } = { ...context.limit(1), name: 'login' }
      const failure = { code: 'WEIR_MISSING_OPTION', message: /^Policy "login" has no "key"\. Choose what requests are counted by:\n/ }
      await assert.rejects(() => context.start(keyless), failure)
      await assert.rejects(() => context.start({ policies: [context.limit(1), keyless] }), failure)
      const throttler = createThrottler({ ...context.base, policies: [keyless] })
      await assert.rejects(() => context.startWith([{ throttler }]), failure)
      throttler.update([{ ...keyless, limit: 2 }])
      await throttler.close()
      const client = await context.start({ ...keyless, key: 'all' })
      assert.throws(() => client.throttlers[0]?.update([{ ...keyless, limit: 9 }]), failure)
      assert.deepEqual(await client.statuses(['/', '/']), [200, 429])
    },
  },
]
