import { CompiledPrograms } from '@weir/bench/compiled-programs'

export const PROGRAMS: CompiledPrograms<'soak'> = new CompiledPrograms(new URL('../../', import.meta.url), { withSources: ['soak'] })
