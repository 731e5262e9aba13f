import type { Plugin } from 'graphql-yoga';

/** A plugin with every hook, so that operations go through the whole pipeline of Yoga. It changes nothing. */
export function everyHook(called: (hook: string) => void = () => {}): Plugin {
  const streamed = (hook: string) => ({
    onNext: () => called(`${hook}.onNext`),
    onEnd: () => called(`${hook}.onEnd`),
  });
  return {
    onRequest: () => called('onRequest'),
    onRequestParse: () => {
      called('onRequestParse');
      return { onRequestParseDone: () => called('onRequestParseDone') };
    },
    onParams: () => called('onParams'),
    onEnveloped: () => called('onEnveloped'),
    onParse: () => {
      called('onParse');
      return () => called('onParseDone');
    },
    onValidate: () => {
      called('onValidate');
      return () => called('onValidateDone');
    },
    onContextBuilding: () => {
      called('onContextBuilding');
      return () => called('onContextBuildingDone');
    },
    onExecute: () => {
      called('onExecute');
      return {
        onExecuteDone: () => {
          called('onExecuteDone');
          return streamed('onExecuteDone');
        },
      };
    },
    onSubscribe: () => called('onSubscribe'),
    onExecutionResult: () => called('onExecutionResult'),
    onResultProcess: () => called('onResultProcess'),
    onResponse: () => called('onResponse'),
  };
}
