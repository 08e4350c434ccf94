import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'
import { NotFound } from './not-found.ts'
import { Scene } from './scene.ts'
import './colours.css'
import './scene.css'

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'not-found': () => h(NotFound) }),
  enhanceApp: ({ app }) => void app.component('Scene', Scene),
} satisfies Theme
