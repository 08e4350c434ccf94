import { describe, expect, test } from 'vitest'
import { positionOf, SLIDER, settled, valueAt } from '../../src/playground/settings/control.ts'
import { SCENES } from '../../src/playground/settings/scenes.ts'
import { readAddress, settingsOf, writeAddress } from '../../src/playground/settings/settings.ts'

describe('the address of a scene', () => {
  test.each(SCENES.map(({ name }) => name))('brings the same settings back: %s', (name) => {
    const before = settingsOf(name, { nodes: '7', load: '12', seed: '99', limit: '31' })
    expect(readAddress(writeAddress(before))).toEqual(before)
  })

  test('with nonsense opens the first scene with its defaults', () => {
    const plain = settingsOf(undefined)
    for (const nonsense of [
      '?scene=__proto__&nodes=',
      '?scene[]=1&nodes=NaN',
      '?%%%&seed=1',
      '?scene=limit&nodes=many&load=&__proto__=3',
    ]) {
      expect(readAddress(nonsense)).toEqual(plain)
    }
  })

  test('contains no value out of range', () => {
    const { values } = readAddress('?scene=limit&nodes=1e99&load=-3&rtt=Infinity&limit=0&interval=-Infinity&seed=0.4&balancing=constructor')
    expect(values).toEqual({ nodes: 50, load: 0.1, rtt: 250, limit: 10, interval: 1, seed: 1, balancing: 'even' })
  })
})

describe('a slider', () => {
  const numbers = SCENES.flatMap(({ controls }) => controls).filter((control) => control.kind === 'number')

  test('reaches both ends, and only values that the control accepts', () => {
    for (const control of numbers) {
      expect(valueAt(control, 0)).toBe(control.least)
      expect(valueAt(control, SLIDER)).toBe(control.most)
      for (let position = 0; position <= SLIDER; position += 25) {
        const value = valueAt(control, position)
        expect(settled(control, value)).toBe(value)
        expect(settled(control, String(value))).toBe(value)
      }
    }
  })

  test('has the position of its value', () => {
    for (const control of numbers) {
      expect(positionOf(control, control.least)).toBe(0)
      expect(positionOf(control, control.most)).toBe(SLIDER)
    }
  })
})
