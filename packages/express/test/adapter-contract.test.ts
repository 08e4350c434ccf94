import { memoryStore } from '@weir/core'
import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { expressAdapter } from './adapter.ts'
import { FRAMEWORKS } from './frameworks.ts'

for (const [name, framework] of FRAMEWORKS) adapterContract(name, expressAdapter(framework), { describe, test })

for (const [name, framework] of FRAMEWORKS.slice(0, 1)) {
  adapterContract(`${name} with a store`, expressAdapter(framework), { describe, test: test.concurrent, store: memoryStore })
}
