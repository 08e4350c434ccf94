import fs from 'node:fs'
import process from 'node:process'
import { createThrottler } from '@weir/core'
import { expect, test, vi } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

describeEtcd('quota that is asked for ahead', () => {
  const here = ownServer()

  test('is asked for without looking for descriptors, once the code for it is loaded', async () => {
    const opened = vi.spyOn(fs, 'openSync')
    const throttler = createThrottler({
      policies: [{ limit: 100, interval: '1h', coordination: 'leased', storeTimeout: PATIENT }],
      store: etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT }),
    })
    try {
      expect((await throttler.checkAsync('first')).allowed).toBe(true)
      opened.mockClear()
      for (const key of ['second', 'third']) expect((await throttler.checkAsync(key)).allowed).toBe(true)
      expect(opened.mock.calls.filter(([path]) => path === process.execPath)).toEqual([])
    } finally {
      opened.mockRestore()
      await throttler.close()
    }
  })
})
