/** `cuvette lab demo` tests three directions of the shipped model, all of which a probe reads with ease, and writes a report on each. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { CuvetteError, messageOf } from '../errors.ts';
import type { ProtocolRecord } from '../lab/causality/verdict.ts';
import type { Lab, LabContext } from '../lab/core/lab.ts';
import { askDemoQuestion } from '../lab/demo/experiments.ts';
import { type DemoQuestion, demoQuestions } from '../lab/demo/questions.ts';
import { openLocalLab } from '../lab/local/local-lab.ts';
import { renderSvg } from '../lab/report/figures.ts';
import { renderReport } from '../lab/report/report.ts';
import { drawRecord } from '../lab/report/terminal.ts';
import { shown, type TerminalStyle, terminalStyle, wrapped } from '../lab/report/terminal-style.ts';
import { findPaths } from '../paths.ts';
import { LAB_DEMO, parseFlags } from './command-flags.ts';
import { shellCommand, stopSignal } from './this-program.ts';

/** The exit code of a shell for Ctrl-C. */
const INTERRUPTED = 130;

interface Answered {
  question: DemoQuestion;
  record: ProtocolRecord;
  manifest: string;
}

export async function main(args: string[]): Promise<number> {
  const { values } = parseFlags({ args, options: LAB_DEMO });
  const seed = Number(values.seed);
  if (!Number.isInteger(seed) || seed < 0)
    throw new CuvetteError('invalid_input', `--seed ${values.seed} is not a whole number from 0 on.`);
  const started = performance.now();
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  // A reader that closes the pipe, as `head` does, ends it too.
  process.stdout.on('error', () => stop.abort());
  const context: LabContext = { signal: stop.signal, progress: () => {} };
  const style = terminalStyle(process.stdout);

  // Its records must not be counted among the user's own experiments.
  const folder = mkdtempSync(join(tmpdir(), 'cuvette-lab-demo-'));
  try {
    const lab = await openLocalLab({ ...findPaths(), data: folder, model: 'demo', project: folder }, context);
    try {
      return await show(lab, { seed, out: resolve(values.out), style, context, started });
    } catch (error) {
      if (stop.signal.aborted) return INTERRUPTED;
      throw error;
    } finally {
      await lab.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Showing {
  seed: number;
  out: string;
  style: TerminalStyle;
  context: LabContext;
  started: number;
}

async function show(lab: Lab, { seed, out, style, context, started }: Showing): Promise<number> {
  const { model_id, architecture, layers, d_model } = await lab.call('colab_status', {}, context);
  say(
    `The model is ${model_id} (${architecture}, ${layers} layers of width ${d_model}), which ships with Cuvette. In its residual stream, ` +
      'probes find three things with ease. Does it use them? Each is asked by the same protocol.',
    style,
  );
  const answered: Answered[] = [];
  for (const question of demoQuestions(seed)) {
    const { answer, record } = await askDemoQuestion((tool, args) => lab.call(tool, args, context), question, seed);
    answered.push({ question, record, manifest: String(answer.manifest_sha256) });
    process.stdout.write(`\n${drawRecord(record, style)}\n`);
    say(question.explanation, style, 2);
  }
  const files = write(out, answered);
  process.stdout.write('\n');
  summarize(answered, style);
  process.stdout.write(`\n${files.map((file) => `  ${file}`).join('\n')}\n`);
  say(
    `Written in ${((performance.now() - started) / 1000).toFixed(1)} seconds, from the start. Next: give your agent the lab (claude mcp add cuvette -- ${shellCommand()} mcp), or open a model of your own with ${shellCommand()} lab serve --model MODEL.`,
    style,
  );
  return answered.every(({ question, record }) => record.verdict.verdict === question.expected) ? 0 : 1;
}

/** Writes a page for each question, and one picture of all. */
function write(out: string, answered: Answered[]): string[] {
  const base = out.replace(/\.html?$/, '');
  const pages = answered.map(({ question, record, manifest }, i) => ({
    path: i === 0 ? `${base}.html` : `${base}-${question.name}.html`,
    content: renderReport(record, { manifest }),
  }));
  const picture = { path: `${base}.svg`, content: renderSvg(answered.map(({ record }) => record)) };
  return [...pages, picture].map(({ path, content }) => {
    try {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
    } catch (error) {
      throw new CuvetteError(
        'invalid_input',
        `${path} cannot be written: ${messageOf(error)}. Choose another with --out.`,
        {
          cause: error,
        },
      );
    }
    return path;
  });
}

function summarize(answered: Answered[], style: TerminalStyle): void {
  const causal = answered.filter(({ record }) => record.verdict.verdict === 'causal').length;
  say(`All ${answered.length} can be read; ${causal} of them the model uses:`, style);
  for (const { question, record } of answered) {
    const { verdict, evidence } = record;
    const auroc = evidence.decodability.auroc.toFixed(3);
    const unexpected = verdict.verdict === question.expected ? '' : ` (the documentation says ${question.expected})`;
    say(`${question.title}  AUROC ${auroc}  ${verdict.verdict}: ${verdict.reason}${unexpected}`, style, 2);
  }
}

function say(text: string, style: TerminalStyle, indent = 0): void {
  process.stdout.write(`${wrapped(shown(text, style), indent, style).join('\n')}\n`);
}
