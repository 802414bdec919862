/**
 * What the protocol's first edition asked of an engine for the question of `timed-protocol.mjs` with 64 pairs and 32 neutral prompts: 28,896 runs in
 * requests of the same kinds and sizes, in the same order. What it computed from the answers is not repeated, so the engine's time alone can be
 * compared.
 */

/** What it concluded. */
export const FIRST_VERDICT = 'epiphenomenal-template';

const SOME_TOKENS = Array.from({ length: 66 }, (_, token) => token);
const LAST = [-1];
/** Random directions went in requests of at most this many variants. */
const LARGEST = 4096;

export async function timeFirstEdition(engine, { layer, dataset, neutral }) {
  const prompts = await engine.tokenize(dataset);
  const neutralPrompts = await engine.tokenize(neutral);
  let seconds = 0;
  let variants = 0;
  for (const request of requests(prompts, neutralPrompts, engine.describe().width, layer)) {
    const start = performance.now();
    await engine.run(request);
    seconds += (performance.now() - start) / 1000;
    variants += request.variants?.length ?? request.prompts.length;
  }
  return { seconds, variants };
}

function* requests(all, neutral, width, layer) {
  const prompts = all.slice(0, all.length / 2);
  const point = { layer, place: 'resid_post' };
  const direction = directions(width);
  const none = () => [];
  const add = (vector = direction(), positions = LAST) => [{ kind: 'add', point, positions, vector }];
  const set = (vector = direction()) => [{ kind: 'set', point, positions: LAST, vector }];
  const interchange = (source = direction()) => [
    { kind: 'interchange', point, positions: LAST, direction: source, source, part: 'along' },
  ];
  /** One vector for all prompts. */
  const addSame = (positions) => {
    const vector = direction();
    return () => add(vector, positions);
  };
  /** For each kind of intervention, all prompts. */
  const each = (asked, kinds) => kinds.flatMap((kind) => asked.map((_, prompt) => ({ prompt, interventions: kind() })));
  const ofSome = (kinds) => ({
    prompts,
    variants: each(prompts, kinds),
    logits: { positions: LAST, tokens: SOME_TOKENS },
  });
  const ofAll = (kinds) => ({ prompts, variants: each(prompts, kinds), logits: { positions: LAST } });
  const times = (count, kind) => Array.from({ length: count }, kind);
  const random = (count) => [...times(count / 2, () => add), ...times(count / 2, () => addSame(LAST))];

  yield { prompts: all, taps: [{ point, positions: LAST }] };
  yield { prompts, logits: { positions: LAST } };
  yield ofSome([none]);
  yield ofSome([add, add, interchange, interchange]);
  yield ofSome([set, interchange]);
  for (let i = 0; i < 6; i++) yield ofSome(random(LARGEST / prompts.length));
  yield ofSome(random(12));
  yield ofAll([none, ...times(36, () => addSame(LAST))]);
  yield ofAll([none, interchange]);
  for (let i = 0; i < 3; i++) yield { prompts: neutral, taps: [{ point, positions: { from: 1 } }] };
  for (let i = 0; i < 10; i++) {
    const some = neutral.slice((i % 2) * 16, (i % 2) * 16 + 16);
    yield { prompts: some, variants: each(some, [none, addSame({ from: 1 })]), surprise: true };
  }
}

/** Numbers between -1 and 1, the same in each run. */
function directions(width) {
  let state = 1;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  return () => Float32Array.from({ length: width }, next);
}
