import type { ComponentChildren } from 'preact'
import {
  type ChoiceControl,
  type NumberControl,
  positionOf,
  SLIDER,
  settled,
  type TextControl,
  type Value,
  valueAt,
} from '../settings/control.ts'
import type { Scene } from '../settings/scenes.ts'
import type { Settings } from '../settings/settings.ts'

type Change = (values: Readonly<Record<string, Value>>) => void

interface ControlsProps {
  readonly scene: Scene
  readonly settings: Settings
  readonly onChange: Change
  /** Fields that are no settings. */
  readonly children?: ComponentChildren
}

export function Controls({ scene, settings, onChange, children }: ControlsProps) {
  return (
    <form class="controls panel" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
      {scene.controls.map((control) => {
        const value = settings.values[control.name] as Value
        const id = `set-${control.name}`
        const change = (next: Value): void => onChange({ [control.name]: next })
        return (
          <div class="control" key={control.name}>
            <label for={id}>{control.label}</label>
            {control.kind === 'number' && <NumberField id={id} control={control} value={Number(value)} onChange={change} />}
            {control.kind === 'choice' && <ChoiceField id={id} control={control} value={String(value)} onChange={change} />}
            {control.kind === 'text' && <TextField id={id} control={control} value={String(value)} onChange={change} />}
          </div>
        )
      })}
      {children}
      <button
        type="button"
        class="quiet"
        onClick={() => onChange(Object.fromEntries(scene.controls.map(({ name, fallback }) => [name, fallback])))}
      >
        Start over
      </button>
    </form>
  )
}

interface FieldProps<Of, In> {
  readonly id: string
  readonly control: Of
  readonly value: In
  readonly onChange: (value: Value) => void
}

/** A slider with a number field, for exact values. */
function NumberField({ id, control, value, onChange }: FieldProps<NumberControl, number>) {
  const { least, most, step, unit, label } = control
  return (
    <div class="number">
      <input
        id={id}
        type="range"
        min={0}
        max={SLIDER}
        value={positionOf(control, value)}
        aria-valuetext={unit === undefined ? String(value) : `${value} ${unit}`}
        onInput={({ currentTarget }) => onChange(valueAt(control, Number(currentTarget.value)))}
        onKeyDown={(event) => {
          const direction = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key]
          if (direction === undefined) return
          // Changes by one step of the value, because several positions of the slider may have the same value.
          event.preventDefault()
          onChange(settled(control, value + direction * (control.logarithmic ? digitOf(value) : step)))
        }}
      />
      <input
        type="number"
        aria-label={`${label}, as a number`}
        min={least}
        max={most}
        step="any"
        value={value}
        onChange={({ currentTarget }) => {
          const next = settled(control, currentTarget.value)
          currentTarget.value = String(next)
          onChange(next)
        }}
      />
      {unit !== undefined && <span class="unit">{unit}</span>}
    </div>
  )
}

/** The value of the second digit of a number. */
function digitOf(value: number): number {
  return 10 ** (Math.floor(Math.log10(value)) - 1)
}

function ChoiceField({ id, control, value, onChange }: FieldProps<ChoiceControl, string>) {
  return (
    <select id={id} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      {control.choices.map(([choice, label]) => (
        <option key={choice} value={choice}>
          {label}
        </option>
      ))}
    </select>
  )
}

function TextField({ id, control, value, onChange }: FieldProps<TextControl, string>) {
  return (
    <textarea
      id={id}
      rows={control.rows}
      maxLength={control.most}
      spellcheck={false}
      value={value}
      onInput={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}
