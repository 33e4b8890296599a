// Quantiles of Student's t distribution, to about 13 digits. Pure. Inverts the distribution
// function P(|T| > t) = I(v / (v + t²); v/2, 1/2) with the regularised incomplete beta function I
// (Abramowitz and Stegun, 26.7.1 and 26.5.27), whose continued fraction is summed by Lentz's
// method.
import { gammaln } from 'simple-statistics';

const FRACTION_TERMS_MAX = 500;
const EPSILON = 1e-16;
const TINY = 1e-300;
/** Maximum halvings of an interval of doubles until no double lies between its ends. */
const HALVINGS_MAX = 200;

/**
 * Returns the value that a t-distributed variable stays below with probability p.
 * @param p between 0.5 and 1
 * @param degrees degrees of freedom, a positive number
 */
export function tQuantile(p: number, degrees: number): number {
  const tails = 2 * (1 - p);
  if (tails >= 1) return 0;
  let low = 0;
  let high = 1;
  while (twoTails(high, degrees) > tails) high *= 2;
  for (let halving = 0; halving < HALVINGS_MAX; halving++) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    if (twoTails(middle, degrees) > tails) low = middle;
    else high = middle;
  }
  return high;
}

/** Returns the probability that |T| exceeds t. */
function twoTails(t: number, degrees: number): number {
  const square = t * t;
  return regularisedBeta(degrees / (degrees + square), square / (degrees + square), degrees / 2, 0.5);
}

/** Returns I(x; a, b). y = 1 - x is given separately, since rounding loses it for x near 1. */
function regularisedBeta(x: number, y: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const front = Math.exp(gammaln(a + b) - gammaln(a) - gammaln(b) + a * Math.log(x) + b * Math.log(y));
  // The fraction converges fast only below the mean.
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(x, a, b)) / a : 1 - (front * betaFraction(y, b, a)) / b;
}

function betaFraction(x: number, a: number, b: number): number {
  const away = (value: number): number => (Math.abs(value) < TINY ? TINY : value);
  let c = 1;
  let d = 1 / away(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= FRACTION_TERMS_MAX; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < EPSILON) break;
  }
  return fraction;
}
