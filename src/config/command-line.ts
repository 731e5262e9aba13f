/** What is typed before a command: in this repository, where npm runs the right Node, or with the installed package. */
export const COMMAND_LINE = import.meta.url.endsWith('.ts')
  ? 'npm start --'
  : 'npx recruiting-subgraph';
