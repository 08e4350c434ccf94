import { memoryStore } from '@weir/core'
import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { webAdapter, without, withoutNode } from './adapter.ts'

adapterContract('@weir/web on @hono/node-server', webAdapter('node'), { describe, test, without })
adapterContract('@weir/web on a platform without responses of Node.js', webAdapter('bun'), { describe, test, without: withoutNode })
adapterContract('@weir/web on @hono/node-server with a store', webAdapter('node'), {
  describe,
  test: test.concurrent,
  store: memoryStore,
  without,
})
