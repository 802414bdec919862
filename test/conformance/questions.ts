/** Tools of the conformance suite that ask the client for something, in the way of the newer era: by an answer that wants another call. */

import {
  acceptedContent,
  createRequestStateCodec,
  type InputRequest,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import * as z from 'zod';

const description = 'A tool of the conformance suite.';
/** Keeps what a client is given to hand back from being changed. */
export const states = createRequestStateCodec({ key: 'a key of thirty-two bytes or more' });

const NAME = z.object({ name: z.string() });
const COLOR = z.object({ color: z.string() });
const OK = z.object({ ok: z.boolean() });

const askName = (message: string) => inputRequired.elicit({ message, requestedSchema: NAME });
const askOk = () => inputRequired.elicit({ message: 'Please confirm', requestedSchema: OK });
const askModel = (text: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens });

const say = (text: string) => ({ content: [{ type: 'text' as const, text }] });
const ask = (inputRequests: Record<string, InputRequest>, requestState?: string) =>
  inputRequired({ inputRequests, ...(requestState !== undefined && { requestState }) });

export function registerQuestions(server: McpServer): void {
  for (const name of ['test_input_required_result_elicitation', 'test_streaming_elicitation']) {
    server.registerTool(name, { description }, ({ mcpReq }) => {
      const answer = acceptedContent(mcpReq.inputResponses, 'user_name', NAME);
      return answer ? say(`Hello, ${answer.name}!`) : ask({ user_name: askName('What is your name?') });
    });
  }
  for (const name of ['test_input_required_result_sampling', 'test_missing_capability']) {
    server.registerTool(name, { description }, ({ mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'capital_question');
      if (answer.kind !== 'sampling') return ask({ capital_question: askModel('What is the capital of France?', 100) });
      return say(JSON.stringify(answer.result.content));
    });
  }
  server.registerTool('test_input_required_result_list_roots', { description }, ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'client_roots');
    if (answer.kind !== 'roots') return ask({ client_roots: inputRequired.listRoots() });
    return say(answer.roots.map(({ uri }) => uri).join(', '));
  });
  server.registerTool('test_input_required_result_capabilities', { description }, () => {
    const can = server.server.getClientCapabilities() ?? {};
    return ask({
      ...(can.elicitation && { user_name: askName('What is your name?') }),
      ...(can.sampling && { greeting: askModel('Generate a greeting', 50) }),
    });
  });
  registerStateful(server);
  server.registerPrompt('test_input_required_result_prompt', { description }, ({ mcpReq }) => {
    const schema = z.object({ context: z.string() });
    const answer = acceptedContent(mcpReq.inputResponses, 'user_context', schema);
    if (!answer) {
      const message = 'What context should the prompt use?';
      return ask({ user_context: inputRequired.elicit({ message, requestedSchema: schema }) });
    }
    return { messages: [{ role: 'user', content: { type: 'text', text: `Use this context: ${answer.context}` } }] };
  });
}

/** Those that give the client something to hand back. */
function registerStateful(server: McpServer): void {
  for (const name of ['test_input_required_result_request_state', 'test_input_required_result_tampered_state']) {
    server.registerTool(name, { description }, async ({ mcpReq }) => {
      const isBack = stateOf(mcpReq) === 'asked' && acceptedContent(mcpReq.inputResponses, 'confirm', OK);
      return isBack ? say('state-ok') : ask({ confirm: askOk() }, await states.mint('asked'));
    });
  }
  server.registerTool('test_input_required_result_multiple_inputs', { description }, async ({ mcpReq }) => {
    const { inputResponses } = mcpReq;
    const answers = ['user_name', 'greeting', 'client_roots'].map((key) => inputResponse(inputResponses, key).kind);
    if (stateOf(mcpReq) === 'asked' && answers.every((kind) => kind !== 'missing')) return say(answers.join(', '));
    const questions = {
      user_name: askName('What is your name?'),
      greeting: askModel('Generate a greeting', 50),
      client_roots: inputRequired.listRoots(),
    };
    return ask(questions, await states.mint('asked'));
  });
  server.registerTool('test_input_required_result_multi_round', { description }, async ({ mcpReq }) => {
    const state = stateOf(mcpReq);
    const color = acceptedContent(mcpReq.inputResponses, 'step2', COLOR);
    if (state === 'named' && color) return say(`You like ${color.color}.`);
    if (state === 'asked' && acceptedContent(mcpReq.inputResponses, 'step1', NAME)) {
      const message = 'Step 2: What is your favorite color?';
      return ask({ step2: inputRequired.elicit({ message, requestedSchema: COLOR }) }, await states.mint('named'));
    }
    return ask({ step1: askName('Step 1: What is your name?') }, await states.mint('asked'));
  });
}

function stateOf(mcpReq: ServerContext['mcpReq']): string | undefined {
  return mcpReq.requestState<string>();
}
