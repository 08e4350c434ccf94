/** A setting that is a number. */
export interface NumberControl {
  readonly kind: 'number'
  readonly name: string
  readonly label: string
  readonly least: number
  readonly most: number
  /** Values are multiples of the step. Logarithmic values have two digits instead. */
  readonly step: number
  readonly fallback: number
  readonly unit?: string
  /** Whether equal distances on the slider multiply the value by the same factor. */
  readonly logarithmic?: true
}

/** A setting that is one of a few. */
export interface ChoiceControl {
  readonly kind: 'choice'
  readonly name: string
  readonly label: string
  readonly choices: readonly (readonly [value: string, label: string])[]
  readonly fallback: string
}

/** A setting that is a text. */
export interface TextControl {
  readonly kind: 'text'
  readonly name: string
  readonly label: string
  /** Characters. */
  readonly most: number
  readonly fallback: string
  readonly rows: number
}

export type Control = NumberControl | ChoiceControl | TextControl
export type Value = number | string

/** The nearest value that a control can have, for any input. */
export function settled(control: Control, asked: unknown): Value {
  switch (control.kind) {
    case 'number':
      return nearest(control, typeof asked === 'string' && asked.trim() !== '' ? Number(asked) : asked)
    case 'choice':
      return control.choices.find(([value]) => value === asked)?.[0] ?? control.fallback
    case 'text':
      return typeof asked === 'string' ? asked.slice(0, control.most) : control.fallback
  }
}

function nearest({ least, most, step, fallback, logarithmic }: NumberControl, asked: unknown): number {
  if (typeof asked !== 'number' || Number.isNaN(asked)) return fallback
  const bounded = Math.min(most, Math.max(least, asked))
  if (logarithmic) return Math.max(least, Number(bounded.toPrecision(2)))
  // Removes the digits that binary fractions add.
  return Number((Math.round(bounded / step) * step).toFixed(6))
}

/** Number of positions of a slider. */
export const SLIDER = 1000

/** The position of a value on a slider. */
export function positionOf({ least, most, logarithmic }: NumberControl, value: number): number {
  const part = logarithmic ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least)
  return Math.round(part * SLIDER)
}

/** The value at a position. */
export function valueAt(control: NumberControl, position: number): number {
  const { least, most, logarithmic } = control
  const part = position / SLIDER
  return nearest(control, logarithmic ? least * (most / least) ** part : least + (most - least) * part)
}
