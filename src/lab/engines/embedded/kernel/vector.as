/** Arithmetic on four numbers at a time. */

/** a × b + c: rounded once where the module may fuse, else twice. */
@inline
export function multiplyAdd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

/** The sum of four sequences, always in the same order. */
@inline
export function sumOf(x: v128): f32 {
  return (
    f32x4.extract_lane(x, 0) +
    f32x4.extract_lane(x, 1) +
    (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3))
  );
}

/** The four sums of four vectors' sequences, each in the order of `sumOf`. */
@inline
export function sumsOf(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab0 = v128.shuffle<f32>(a, b, 0, 4, 1, 5);
  const ab1 = v128.shuffle<f32>(a, b, 2, 6, 3, 7);
  const cd0 = v128.shuffle<f32>(c, d, 0, 4, 1, 5);
  const cd1 = v128.shuffle<f32>(c, d, 2, 6, 3, 7);
  const lanes0 = v128.shuffle<f64>(ab0, cd0, 0, 2);
  const lanes1 = v128.shuffle<f64>(ab0, cd0, 1, 3);
  const lanes2 = v128.shuffle<f64>(ab1, cd1, 0, 2);
  const lanes3 = v128.shuffle<f64>(ab1, cd1, 1, 3);
  return f32x4.add(f32x4.add(lanes0, lanes1), f32x4.add(lanes2, lanes3));
}

/** The sum of two doubles. */
@inline
export function sumOfPairs(x: v128): f64 {
  return f64x2.extract_lane(x, 0) + f64x2.extract_lane(x, 1);
}

/** The third and the fourth number, in the first and second place. */
@inline
export function upper(x: v128): v128 {
  return v128.shuffle<f32>(x, x, 2, 3, 2, 3);
}

/** The highest of some numbers. */
export function highest(at: usize, count: i32): f32 {
  let top = v128.load_splat<f32>(at);
  const whole = count & ~3;
  for (let i = 0; i < whole; i += 4) top = f32x4.pmax(top, v128.load(at + (<usize>i << 2)));
  for (let i = whole; i < count; i++) top = f32x4.pmax(top, v128.load_splat<f32>(at + (<usize>i << 2)));
  top = f32x4.pmax(top, upper(top));
  return max(f32x4.extract_lane(top, 0), f32x4.extract_lane(top, 1));
}

/**
 * e to the x, with an error of about one unit in the last place. Results below the smallest normal number become that number. It is
 * inlined, because V8 makes each constant anew where it is not in a loop.
 */
@inline
export function exponential(x: v128): v128 {
  const bounded = f32x4.pmax(f32x4.pmin(x, f32x4.splat(88.3)), f32x4.splat(-87.3));
  const whole = f32x4.nearest(f32x4.mul(bounded, f32x4.splat(1.44269504088896341)));
  // The logarithm of 2 in two parts; the first has so few digits that its product with a whole number is exact.
  let rest = multiplyAdd(whole, f32x4.splat(-0.693359375), bounded);
  rest = multiplyAdd(whole, f32x4.splat(2.12194440054690583e-4), rest);
  let sum = f32x4.splat(1.0 / 5040.0);
  sum = multiplyAdd(sum, rest, f32x4.splat(1.0 / 720.0));
  sum = multiplyAdd(sum, rest, f32x4.splat(1.0 / 120.0));
  sum = multiplyAdd(sum, rest, f32x4.splat(1.0 / 24.0));
  sum = multiplyAdd(sum, rest, f32x4.splat(1.0 / 6.0));
  sum = multiplyAdd(sum, rest, f32x4.splat(0.5));
  sum = multiplyAdd(sum, f32x4.mul(rest, rest), rest);
  sum = f32x4.add(sum, f32x4.splat(1));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(whole), i32x4.splat(127)), 23);
  return f32x4.mul(sum, power);
}

/** The hyperbolic tangent: a polynomial near 0, where the difference of two numbers close to 1 would lose digits, and by the exponential beyond. */
export function hyperbolicTangent(x: v128): v128 {
  const square = f32x4.mul(x, x);
  let near = f32x4.splat(-5.70498872745e-3);
  near = multiplyAdd(near, square, f32x4.splat(2.06390887954e-2));
  near = multiplyAdd(near, square, f32x4.splat(-5.37397155531e-2));
  near = multiplyAdd(near, square, f32x4.splat(1.33314422036e-1));
  near = multiplyAdd(near, square, f32x4.splat(-3.33332819422e-1));
  near = multiplyAdd(f32x4.mul(near, square), x, x);
  const power = exponential(f32x4.add(x, x));
  const far = f32x4.sub(f32x4.splat(1), f32x4.div(f32x4.splat(2), f32x4.add(power, f32x4.splat(1))));
  return v128.bitselect(near, far, f32x4.lt(f32x4.abs(x), f32x4.splat(0.625)));
}

@inline
export function fillZeros(to: usize, count: i32): void {
  for (let i = 0; i < count; i += 4) storeSome(to + (<usize>i << 2), f32x4.splat(0), count - i);
}

/** For so few numbers that calling `memory.copy`, which leaves WebAssembly, takes longer than copying. */
@inline
export function copyNumbers(to: usize, from: usize, count: i32): void {
  for (let i = 0; i < count; i += 4) {
    const at = <usize>i << 2;
    storeSome(to + at, loadSome(from + at, count - i), count - i);
  }
}

/** Up to four numbers; what is not there is 0. */
@inline
export function loadSome(from: usize, count: i32): v128 {
  return count >= 4 ? v128.load(from) : loadFew(from, count);
}

@inline
export function storeSome(to: usize, x: v128, count: i32): void {
  if (count >= 4) v128.store(to, x);
  else storeFew(to, x, count);
}

function loadFew(from: usize, count: i32): v128 {
  let x = f32x4.replace_lane(f32x4.splat(0), 0, load<f32>(from));
  if (count > 1) x = f32x4.replace_lane(x, 1, load<f32>(from, 4));
  return count > 2 ? f32x4.replace_lane(x, 2, load<f32>(from, 8)) : x;
}

function storeFew(to: usize, x: v128, count: i32): void {
  store<f32>(to, f32x4.extract_lane(x, 0));
  if (count > 1) store<f32>(to, f32x4.extract_lane(x, 1), 4);
  if (count > 2) store<f32>(to, f32x4.extract_lane(x, 2), 8);
}
