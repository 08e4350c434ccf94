export { BATCH_BUCKETS, DURATION_BUCKETS, METRICS, type Metric, type Reading } from './catalogue.ts'
