import { memoryStore } from '@weir/core'
import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { fastifyAdapter } from './adapter.ts'
import { FRAMEWORKS } from './frameworks.ts'

for (const [name, framework] of FRAMEWORKS) adapterContract(name, fastifyAdapter(framework), { describe, test })

for (const [name, framework] of FRAMEWORKS.slice(0, 1)) {
  adapterContract(`${name} with a store`, fastifyAdapter(framework), { describe, test: test.concurrent, store: memoryStore })
}
