export type { RulesStatus } from '../report/rules-status.ts'
export { type CheckedRules, type CheckRulesOptions, checkRules, type RuleSet } from './check.ts'
export type {
  NextRules,
  RulesAlgorithm,
  RulesCalendar,
  RulesChange,
  RulesDocument,
  RulesKey,
  RulesOverride,
  RulesPolicy,
} from './document.ts'
export { type Followed, type FollowOptions, follow, type RulesFollower } from './follow.ts'
export type { NamedFunctions, NamedKind } from './named.ts'
export type { JudgedPolicy } from './next.ts'
export type { Override } from './overrides.ts'
export { type ParsedRules, type ParseOptions, parseRules } from './parse.ts'
export { type Path, type Place, RulesError, type RulesProblem } from './problems.ts'
export type { RulesSource } from './source.ts'
export { fileRules } from './sources/file.ts'
export { type HttpRulesOptions, httpRules } from './sources/http.ts'
export type { YamlLibrary } from './yaml.ts'
