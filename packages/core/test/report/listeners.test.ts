import { expect, test } from 'vitest'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, scene, warnings } from '../support/nodes.ts'

function blocking(): Node {
  return scene().node({ limit: 1, interval: '1m', cooldown: '1m' })
}

test('a listener hears until it is removed, and each addition is removed by itself', () => {
  const throttler = blocking()
  const heard: string[] = []
  const listener = ({ key }: { key: string }): void => {
    heard.push(key)
  }
  const remove = throttler.on('blocked', listener)
  throttler.block('a', '1m')
  remove()
  remove()
  throttler.block('b', '1m')
  expect(heard).toEqual(['a'])
})

test('what a listener throws harms neither the request nor the other listeners', async () => {
  const heard = warnings()
  const throttler = blocking()
  const keys: string[] = []
  throttler.on('blocked', () => {
    throw new Error('listener broke')
  })
  throttler.on('blocked', ({ key }) => keys.push(key))
  throttler.check('a')
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'cooldown' })
  expect(keys).toEqual(['a'])
  await new Promise((resolve) => setImmediate(resolve))
  expect(heard.filter(({ message }) => message.includes('listener broke'))).toHaveLength(1)
})

test('a listener that is removed while an event is handed out', () => {
  const throttler = blocking()
  const heard: string[] = []
  const removeFirst = throttler.on('blocked', () => {
    heard.push('first')
    removeFirst()
  })
  throttler.on('blocked', () => heard.push('second'))
  throttler.block('a', '1m')
  throttler.block('a', '1m')
  expect(heard).toEqual(['first', 'second', 'second'])
})

test('each recorder receives an event, and counts as no listener', () => {
  const throttler = blocking()
  const { emitter } = adapterOf(throttler).inspected
  const recorded: string[] = []
  for (const name of ['first', 'second']) emitter.record(['blocked'], (event) => recorded.push(`${name} ${event}`))
  expect(emitter.heard('blocked')).toBe(false)
  throttler.block('a', '1m')
  throttler.unblock('a')
  expect(recorded).toEqual(['first blocked', 'second blocked'])
})
