import type { WeirError } from '@weir/core'
import type { Authorize } from '../options.ts'
import { FunctionGate } from './function-gate.ts'
import type { Gate } from './gate.ts'
import { OpenGate } from './open-gate.ts'
import type { Password } from './password.ts'
import { PasswordGate } from './password-gate.ts'

/** @param warn - called with a warning if a function fails */
export function makeGate(authorize: Authorize, warn: (error: WeirError, subject: string) => void): Gate {
  if (authorize === 'none') return new OpenGate()
  return typeof authorize === 'function' ? new FunctionGate(authorize, warn) : new PasswordGate(authorize as Password)
}
