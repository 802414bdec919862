/** The activation functions of MLPs, and the soft cap of logits. */

import { endRow, field, firstRow, numberField } from './operation';
import { exponential, hyperbolicTangent, loadSome, multiplyAdd, storeSome } from './vector';

const GELU: usize = 0;
const GELU_TANH: usize = 1;
const SILU: usize = 2;

/** In place. Fields: rows' address, stride, rows, width, which function, whether what follows each row is multiplied with it. */
export function activate(operation: usize, item: i32): void {
  const stride = field(operation, 1);
  const width = <i32>field(operation, 3);
  const kind = field(operation, 4);
  const gated = field(operation, 5);
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) {
    const at = field(operation, 0) + <usize>row * stride;
    if (kind == GELU) activateByGelu(at, width);
    else if (kind == GELU_TANH) activateByTanh(at, width);
    else if (kind == SILU) activateBySilu(at, width);
    else activateByRelu(at, width);
    if (gated) multiplyRow(at, at + (<usize>width << 2), width);
  }
}

/** In place, value becomes cap × tanh(value / cap). Fields: rows' address, stride, rows, width, cap. */
export function capRows(operation: usize, item: i32): void {
  const width = <i32>field(operation, 3);
  const cap = numberField(operation, 4);
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) capSome(field(operation, 0) + <usize>row * field(operation, 1), width, 1, cap);
}

/** In place, each of some values times the scale becomes cap × tanh(value / cap). */
export function capSome(at: usize, count: i32, scale: f32, cap: f32): void {
  const factor = f32x4.splat(scale);
  const most = f32x4.splat(cap);
  for (let i = 0; i < count; i += 4) {
    const x = at + (<usize>i << 2);
    const value = f32x4.mul(loadSome(x, count - i), factor);
    storeSome(x, f32x4.mul(hyperbolicTangent(f32x4.div(value, most)), most), count - i);
  }
}

function activateByGelu(at: usize, width: i32): void {
  for (let left = width; left > 0; left -= 4, at += 16) storeSome(at, gelu(loadSome(at, left)), left);
}

function activateByTanh(at: usize, width: i32): void {
  for (let left = width; left > 0; left -= 4, at += 16) storeSome(at, geluByTanh(loadSome(at, left)), left);
}

function activateBySilu(at: usize, width: i32): void {
  for (let left = width; left > 0; left -= 4, at += 16) storeSome(at, silu(loadSome(at, left)), left);
}

function activateByRelu(at: usize, width: i32): void {
  for (let left = width; left > 0; left -= 4, at += 16) {
    storeSome(at, f32x4.pmax(loadSome(at, left), f32x4.splat(0)), left);
  }
}

function multiplyRow(at: usize, by: usize, width: i32): void {
  for (let left = width; left > 0; left -= 4, at += 16, by += 16) {
    storeSome(at, f32x4.mul(loadSome(at, left), loadSome(by, left)), left);
  }
}

@inline
function silu(x: v128): v128 {
  return f32x4.div(x, f32x4.add(f32x4.splat(1), exponential(f32x4.neg(x))));
}

/** x/2 × (1 + tanh(u)) is x / (1 + exp(-2u)). */
@inline
function geluByTanh(x: v128): v128 {
  const cubic = multiplyAdd(f32x4.mul(x, x), f32x4.splat(0.044715), f32x4.splat(1));
  const power = f32x4.mul(f32x4.mul(x, f32x4.splat(-1.59576912160573071)), cubic);
  return f32x4.div(x, f32x4.add(f32x4.splat(1), exponential(power)));
}

/**
 * x times the probability that a standard normal variable is below x. The tail beyond |x| is exp(-x²/2) times a polynomial in
 * t = 1 / (1 + 0.3 |x|), fitted by least squares of the relative error, which is below 5e-9.
 */
@inline
function gelu(x: v128): v128 {
  const t = f32x4.div(f32x4.splat(1), multiplyAdd(f32x4.abs(x), f32x4.splat(0.3), f32x4.splat(1)));
  let tail = f32x4.splat(-0.0208782614);
  tail = multiplyAdd(tail, t, f32x4.splat(0.1138065161));
  tail = multiplyAdd(tail, t, f32x4.splat(-0.2314002862));
  tail = multiplyAdd(tail, t, f32x4.splat(0.1959741853));
  tail = multiplyAdd(tail, t, f32x4.splat(-0.08284755051));
  tail = multiplyAdd(tail, t, f32x4.splat(0.09795569732));
  tail = multiplyAdd(tail, t, f32x4.splat(0.07778385843));
  tail = multiplyAdd(tail, t, f32x4.splat(0.1103611909));
  tail = multiplyAdd(tail, t, f32x4.splat(0.1195572413));
  tail = multiplyAdd(tail, t, f32x4.splat(0.1196874067));
  tail = f32x4.mul(f32x4.mul(tail, t), exponential(f32x4.mul(f32x4.mul(x, x), f32x4.splat(-0.5))));
  const isPositive = f32x4.gt(x, f32x4.splat(0));
  return f32x4.mul(x, v128.bitselect(f32x4.sub(f32x4.splat(1), tail), tail, isPositive));
}
