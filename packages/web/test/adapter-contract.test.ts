import { memoryStore } from '@weir/core'
import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { webAdapter } from './adapter.ts'

adapterContract('@weir/web on @hono/node-server', webAdapter, { describe, test })
adapterContract('@weir/web on @hono/node-server with a store', webAdapter, { describe, test: test.concurrent, store: memoryStore })
