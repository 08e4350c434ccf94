package com.google.common.util.concurrent;

import static java.util.concurrent.TimeUnit.MICROSECONDS;
import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Random;

/**
 * Makes warm-up.json from Guava's RateLimiter: requests at random times to limiters that warm up, and how long each has to wait.
 * It stands in Guava's package, since only there a limiter can be given its clock and a cold factor.
 *
 * <pre>
 * apt-get install openjdk-17-jdk-headless libguava-java
 * javac -cp /usr/share/java/guava.jar -d /tmp/warm-up guava/com/google/common/util/concurrent/WarmUp.java
 * java -cp /usr/share/java/guava.jar:/tmp/warm-up com.google.common.util.concurrent.WarmUp > warm-up.json
 * npx biome format --write warm-up.json
 * </pre>
 */
class WarmUp {
  /** Time that passes only when somebody waits. */
  static class Time extends RateLimiter.SleepingStopwatch {
    long micros = 0;

    @Override
    protected long readMicros() {
      return micros;
    }

    @Override
    protected void sleepMicrosUninterruptibly(long more) {
      micros += more;
    }
  }

  public static void main(String[] args) {
    Random random = new Random(1);
    // Permits a second, milliseconds, cold factor.
    int[][] shapes = {{2, 4000, 3}, {5, 10000, 10}, {100, 1000, 3}, {7, 500, 2}, {50, 20000, 5}};
    System.out.println("[");
    for (int shape = 0; shape < shapes.length; shape++) {
      int limit = shapes[shape][0];
      int warmUp = shapes[shape][1];
      int coldFactor = shapes[shape][2];
      Time time = new Time();
      RateLimiter limiter = RateLimiter.create(limit, warmUp, MILLISECONDS, coldFactor, time);
      System.out.printf("{\"limit\":%d,\"warmUp\":%d,\"coldFactor\":%d,\"rows\":[%n", limit, warmUp, coldFactor);
      for (int row = 0; row < 300; row++) {
        int kind = random.nextInt(10);
        long rest = kind < 6 ? 0 : kind < 9 ? random.nextInt(3_000_000 / limit) : random.nextInt(2_000 * warmUp);
        int permits = random.nextInt(4) > 0 ? 1 : 1 + random.nextInt(2 + limit / 2);
        time.sleepMicrosUninterruptibly(rest);
        long before = time.readMicros();
        limiter.acquire(permits);
        System.out.printf("[%d,%d,%d]%s%n", rest, permits, time.readMicros() - before, row == 299 ? "]}" : ",");
      }
      if (shape < shapes.length - 1) System.out.println(",");
    }
    System.out.println("]");
  }
}
