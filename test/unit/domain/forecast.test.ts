import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { projectDays, projectUse, trainForecast } from '../../../pipeline/domain/stats/forecast.ts';
import { fitLine, predictLine } from '../../../pipeline/domain/stats/ols.ts';
import { tQuantile } from '../../../pipeline/domain/stats/student_t.ts';

/** Maximum relative error at which 9 digits agree. */
const NINE_DIGITS = 5e-10;
function expectDigits(actual: number, certified: number, digits = NINE_DIGITS): void {
  expect(Math.abs(actual - certified) / Math.abs(certified)).toBeLessThan(digits);
}

/** NIST StRD, linear regression, dataset Norris: [y, x]. */
const NORRIS: readonly (readonly [number, number])[] = [
  [0.1, 0.2],
  [338.8, 337.4],
  [118.1, 118.2],
  [888.0, 884.6],
  [9.2, 10.1],
  [228.1, 226.5],
  [668.5, 666.3],
  [998.5, 996.3],
  [449.1, 448.6],
  [778.9, 777.0],
  [559.2, 558.2],
  [0.3, 0.4],
  [0.1, 0.6],
  [778.1, 775.5],
  [668.8, 666.9],
  [339.3, 338.0],
  [448.9, 447.5],
  [10.8, 11.6],
  [557.7, 556.0],
  [228.3, 228.1],
  [998.0, 995.8],
  [888.8, 887.6],
  [119.6, 120.2],
  [0.3, 0.3],
  [0.6, 0.3],
  [557.6, 556.8],
  [339.3, 339.1],
  [888.0, 887.2],
  [998.5, 999.0],
  [778.9, 779.0],
  [10.2, 11.1],
  [117.6, 118.3],
  [228.9, 229.2],
  [668.4, 669.1],
  [449.2, 448.9],
  [0.2, 0.5],
];

describe('least squares', () => {
  const norris = fitLine(NORRIS.map(([y, x]) => [x, y]));

  it('least squares gives the certified values of NIST StRD Norris', () => {
    expect(norris.n).toBe(36);
    expectDigits(norris.intercept, -0.262323073774029);
    expectDigits(norris.slope, 1.00211681802045);
    expectDigits(norris.r_squared ?? NaN, 0.999993745883712);
    expectDigits(norris.residual_sd, 0.884796396144373);
    // Standard deviation of the slope and the intercept, from the same sums.
    expectDigits(norris.residual_sd / Math.sqrt(norris.sxx), 0.429796848199937e-3);
    expectDigits(norris.residual_sd * Math.sqrt(1 / norris.n + norris.mean_x ** 2 / norris.sxx), 0.232818234301152);
  });

  it('least squares loses no digits where the values lie far from zero', () => {
    const far = fitLine(NORRIS.map(([y, x]) => [x, y + 1e6]));
    expectDigits(far.slope, 1.00211681802045);
    expectDigits(far.residual_sd, 0.884796396144373, 1e-8);
  });

  it('least squares has no r squared where y does not vary', () => {
    expect(fitLine([0, 1, 2, 3].map((x) => [x, 0.1])).r_squared).toBeNull();
  });

  it('least squares gives a prediction interval that is symmetric and widens away from the mean', () => {
    const near = predictLine(norris, norris.mean_x, 0.95);
    const away = predictLine(norris, 1500, 0.95);
    expectDigits(near.upper - near.value, 2.0322445093177 * norris.residual_sd * Math.sqrt(1 + 1 / 36));
    expect(away.upper - away.value).toBeGreaterThan(near.upper - near.value);
    expectDigits(away.value - away.lower, away.upper - away.value);
  });
});

describe("quantiles of Student's t", () => {
  // Degrees 1 and 2 in closed form: tan(pi (p - 1/2)), and (2p - 1) / sqrt(2 p (1 - p)).
  it.each([0.6, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9995])(
    "quantiles of Student's t are exact for 1 and 2 degrees at %d",
    (p) => {
      expectDigits(tQuantile(p, 1), Math.tan(Math.PI * (p - 0.5)), 1e-11);
      expectDigits(tQuantile(p, 2), (2 * p - 1) / Math.sqrt(2 * p * (1 - p)), 1e-11);
    },
  );

  // The printed table (three digits after the point), two-sided 95 %.
  it.each([
    [3, 3.182],
    [4, 2.776],
    [5, 2.571],
    [6, 2.447],
    [7, 2.365],
    [8, 2.306],
    [9, 2.262],
    [10, 2.228],
    [12, 2.179],
    [15, 2.131],
    [20, 2.086],
    [25, 2.06],
    [30, 2.042],
    [40, 2.021],
    [60, 2.0],
    [120, 1.98],
  ])("quantiles of Student's t are those of the table for %d degrees", (degrees, value) => {
    expect(tQuantile(0.975, degrees)).toBeCloseTo(value, 3);
  });

  it("quantiles of Student's t approach the normal distribution", () => {
    expect(tQuantile(0.975, 1e8)).toBeCloseTo(1.959963984540054, 6);
    expect(tQuantile(0.5, 7)).toBe(0);
  });

  it("quantiles of Student's t leave the requested probability beyond them, by the density itself", () => {
    // Simpson's rule over the density of 10 degrees, whose constant is 315 / (256 sqrt 10).
    const density = (t: number): number => (315 / (256 * Math.sqrt(10))) * (1 + (t * t) / 10) ** -5.5;
    const t = tQuantile(0.975, 10);
    const steps = 2000;
    let area = density(0) + density(t);
    for (let i = 1; i < steps; i++) area += (i % 2 === 0 ? 2 : 4) * density((t * i) / steps);
    expect(0.5 + (area * t) / steps / 3).toBeCloseTo(0.975, 12);
  });
});

describe('forecast', () => {
  const line = Array.from({ length: 20 }, (_, day) => 3 + 0.5 * day);

  it('a forecast follows a line and says that it fits', () => {
    const forecast = trainForecast(line);
    expect(forecast).toMatchObject({ days: 20, mean_fallback: false });
    expect(forecast.r_squared).toBeCloseTo(1, 12);
    expect(forecast.at(0)).toMatchObject({
      value: expect.closeTo(13, 9) as number,
      lower: expect.closeTo(13, 6) as number,
    });
    expect(forecast.at(29).value).toBeCloseTo(27.5, 9);
  });

  it('a forecast is never below 0', () => {
    const forecast = trainForecast(line.toReversed());
    expect(forecast.at(200)).toEqual({ value: 0, lower: 0, upper: 0 });
  });

  it('a forecast is the mean under 14 days', () => {
    const forecast = trainForecast(line.slice(0, 13));
    expect(forecast).toMatchObject({ days: 13, mean_fallback: true, r_squared: null });
    // Mean 6, s = 0.5 sqrt(13 · 14 / 12), t(0.975, 12) = 2.1788128296672.
    const half = 2.1788128296672 * 0.5 * Math.sqrt((13 * 14) / 12) * Math.sqrt(1 + 1 / 13);
    expect(forecast.at(5)).toEqual({
      value: 6,
      lower: expect.closeTo(6 - half, 9) as number,
      upper: expect.closeTo(6 + half, 9) as number,
    });
    expect(trainForecast(line.slice(0, 14)).mean_fallback).toBe(false);
  });

  it('a forecast is the mean where the days do not vary', () => {
    const forecast = trainForecast(Array.from({ length: 40 }, () => 0.1));
    expect(forecast).toMatchObject({ mean_fallback: true, r_squared: null });
    const { value, lower, upper } = forecast.at(3);
    expect([value, lower, upper]).toEqual([value, value, value]);
    expect(value).toBeCloseTo(0.1, 15);
  });

  it('a forecast without data is zero', () => {
    expect(trainForecast([]).at(0)).toEqual({ value: 0, lower: 0, upper: 0 });
    expect(trainForecast([4]).at(0)).toEqual({ value: 4, lower: 4, upper: 4 });
  });

  it('the interval of a sum of days is narrower than the sum of their intervals, and that of one day is the same', () => {
    const noisy = line.map((total, day) => total + (day % 3));
    for (const history of [noisy, noisy.slice(0, 10)]) {
      const forecast = trainForecast(history);
      const halves = Array.from({ length: 30 }, (_, ahead) => {
        const { value, upper } = forecast.at(ahead);
        return upper - value;
      });
      expect(forecast.sumHalf(0)).toBeCloseTo(halves[0] ?? 0, 9);
      const all = halves.reduce((sum, half) => sum + half, 0);
      expect(forecast.sumHalf(29)).toBeLessThan(all);
      // Errors of days that are independent of each other grow with the square root of their number.
      expect(forecast.sumHalf(29)).toBeGreaterThan(Math.sqrt(30) * (halves[0] ?? 0) * 0.9);
    }
    // Mean 7/2, s² = 7/2 of 6 days; the sum of 4 further days has the variance s² (4 + 16/6).
    const dice = trainForecast([1, 2, 3, 4, 5, 6]);
    expect(dice.sumHalf(3)).toBeCloseTo(2.570581835636314 * Math.sqrt(3.5 * (4 + 16 / 6)), 9);
  });

  it('use of a period grows by the days to come, and today only by its missing part', () => {
    const forecast = trainForecast(line);
    const days = projectDays(forecast, { used: 100, usedToday: 4, daysLeft: 3 });
    expect(days.map(({ value }) => value)).toEqual([109, 122.5, 136.5].map((sum) => expect.closeTo(sum, 9) as number));
    expect(projectDays(forecast, { used: 100, usedToday: 40, daysLeft: 1 })[0]?.value).toBe(100);
    expect(projectDays(forecast, { used: 100, usedToday: 4, daysLeft: 0 })).toEqual([]);
  });

  it('a forecast is ordered, finite and not negative for any history', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), { maxLength: 90 }),
        fc.integer({ min: 0, max: 89 }),
        (history, ahead) => {
          const { value, lower, upper } = trainForecast(history).at(ahead);
          expect(0 <= lower && lower <= value && value <= upper && Number.isFinite(upper)).toBe(true);
        },
      ),
    );
  });
});

describe('use by the end of a period', () => {
  const forecast = trainForecast(Array.from({ length: 20 }, (_, day) => 3 + 0.5 * day));

  it('projected use adds the rest of today and every later day', () => {
    const { predicted, reached_in } = projectUse(forecast, { used: 100, usedToday: 5, daysLeft: 3, limit: 125 });
    // 13 today, of which 5 are used, then 13.5 and 14.
    expect(predicted).toBeCloseTo(100 + 8 + 13.5 + 14, 9);
    expect(reached_in).toBe(2);
  });

  it('projected use knows a limit that is reached already, and one that is not reached', () => {
    expect(projectUse(forecast, { used: 10, usedToday: 0, daysLeft: 2, limit: 10 }).reached_in).toBe(0);
    expect(projectUse(forecast, { used: 10, usedToday: 40, daysLeft: 1, limit: 50 })).toEqual({
      predicted: 10,
      reached_in: null,
    });
  });
});
