import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { nestAdapter } from './adapter.ts'
import { PLATFORMS } from './platforms.ts'

for (const platform of PLATFORMS) {
  adapterContract(`NestJS on ${platform.name}`, nestAdapter(platform), { describe, test, without: platform.without })
}
