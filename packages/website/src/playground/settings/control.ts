/** A setting that is a number. */
export interface NumberControl {
  readonly kind: 'number'
  readonly name: string
  readonly label: string
  readonly least: number
  readonly most: number
  /** Values are multiples of it; of a logarithmic one they have two digits instead. */
  readonly step: number
  readonly fallback: number
  readonly unit?: string
  /** Whether each part of the slider multiplies by the same. */
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
  /** Whether it stays in the page: it is in no address. */
  readonly secret?: true
}

export type Control = NumberControl | ChoiceControl | TextControl
export type Value = number | string

/** The nearest value that a control can have: whatever is asked for, it is in range. */
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
  // Without the digits that binary fractions add.
  return Number((Math.round(bounded / step) * step).toFixed(6))
}

/** Positions of a slider. */
export const SLIDER = 1000

/** Where a value is on a slider of `SLIDER` positions. */
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
