import { inspect } from 'node:util'
import { WeirError } from '@weir/core'
import { describe, expect, test } from 'vitest'
import { Password } from '../src/access/password.ts'
import { password } from '../src/index.ts'
import { PASSWORD } from './servers.ts'

function thrownBy(make: () => unknown): WeirError {
  try {
    make()
  } catch (error) {
    if (error instanceof WeirError) return error
    throw error
  }
  throw new Error('Nothing was thrown.')
}

describe('a password that can not be used is rejected, and never shown', () => {
  test.each<[string, unknown, WeirError['code'], RegExp]>([
    ['none', undefined, 'WEIR_MISSING_OPTION', /missing\. Set the variable that it comes from/],
    ['an empty one', '', 'WEIR_MISSING_OPTION', /missing/],
    ['a short one', 'secret12345', 'WEIR_INVALID_OPTION', /has 11 characters\. Use 12 to 256/],
    ['one that no form can send', 'secret'.repeat(50), 'WEIR_INVALID_OPTION', /has 300 characters\. Use 12 to 256/],
    [
      'one read from a file, with the end of its line',
      'secret secret secret\n',
      'WEIR_INVALID_OPTION',
      /has a line break .* at its end\. Use one line of text/,
    ],
    ['one with a control character', 'secret\u0000secret secret', 'WEIR_INVALID_OPTION', /or a control character/],
    ['a number', 123_456_789_012, 'WEIR_INVALID_OPTION', /is a number\. Use a string/],
    ['an object', { secret: 'secret secret secret' }, 'WEIR_INVALID_OPTION', /is an object\. Use a string/],
  ])('%s', (_what, secret, code, message) => {
    const error = thrownBy(() => password(secret as string))
    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
    expect(inspect(error)).not.toMatch(/secret\d|secret.?secret/)
  })
})

test('nothing of a password shows when options are logged', () => {
  const access = password(PASSWORD)
  for (const text of [inspect(access, { showHidden: true, depth: 9 }), JSON.stringify(access), String(access)])
    expect(text).not.toContain('correct')
})

describe('what was typed is compared', () => {
  test.each([
    [PASSWORD, PASSWORD, true],
    [PASSWORD, `${PASSWORD} `, false],
    [PASSWORD, PASSWORD.toUpperCase(), false],
    [PASSWORD, PASSWORD.slice(0, -1), false],
    [PASSWORD, '', false],
    [PASSWORD, PASSWORD.repeat(100), false],
    // The same letters in decomposed form, as some keyboards write them.
    ['fünf Zwölftel ö', 'fu\u0308nf Zwo\u0308lftel o\u0308', true],
    ['fünf Zwölftel ö', 'funf Zwolftel o', false],
  ])('%j with %j', (secret, given, same) => {
    expect(new Password(secret).matches(given)).toBe(same)
  })
})

test('what is signed by one password is the same in every process, and another password signs otherwise', () => {
  expect(new Password(PASSWORD).sign('a')).toBe(new Password(PASSWORD).sign('a'))
  expect(new Password(PASSWORD).sign('a')).not.toBe(new Password(PASSWORD).sign('b'))
  expect(new Password(PASSWORD).sign('a')).not.toBe(new Password(`${PASSWORD}!`).sign('a'))
})
