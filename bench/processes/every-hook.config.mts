/** A plugin that has every hook of Yoga and Envelop, and does nothing in them. */
const everyHook = {
  onRequest() {},
  onRequestParse: () => ({ onRequestParseDone() {} }),
  onParams() {},
  onEnveloped() {},
  onParse: () => () => {},
  onValidate: () => () => {},
  onContextBuilding: () => () => {},
  onExecute: () => ({ onExecuteDone() {} }),
  onSubscribe() {},
  onExecutionResult() {},
  onResultProcess() {},
  onResponse() {},
};

export default { plugins: [everyHook] };
