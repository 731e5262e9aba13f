import type { Plugin } from 'graphql-yoga';

/**
 * A plugin with every hook, so that operations go through the whole pipeline of Yoga. It changes nothing.
 * @param called receives what the hook is given
 */
export function everyHook(called: (hook: string, given: unknown) => void = () => {}): Plugin {
  const calling = (hook: string) => (given?: unknown) => called(hook, given);
  const withDone = (hook: string) => (given: unknown) => {
    called(hook, given);
    return calling(`${hook}Done`);
  };
  return {
    onRequest: calling('onRequest'),
    onRequestParse: (given) => {
      called('onRequestParse', given);
      return { onRequestParseDone: calling('onRequestParseDone') };
    },
    onParams: calling('onParams'),
    onEnveloped: calling('onEnveloped'),
    onParse: withDone('onParse'),
    onValidate: withDone('onValidate'),
    onContextBuilding: withDone('onContextBuilding'),
    onExecute: (given) => {
      called('onExecute', given);
      return { onExecuteDone: calling('onExecuteDone') };
    },
    onSubscribe: calling('onSubscribe'),
    onExecutionResult: calling('onExecutionResult'),
    onResultProcess: calling('onResultProcess'),
    onResponse: calling('onResponse'),
  };
}
