import java.util.concurrent.ThreadLocalRandom;

/** Allocates without end: a cache of ENTRIES blocks of 64 KiB, and garbage. */
public class Service {
  public static void main(String[] a) throws Exception {
    byte[][] cache = new byte[Integer.parseInt(a[0])][];
    for (int i = 0; i < cache.length; i++) cache[i] = new byte[64 << 10];
    System.out.println("ready");
    for (long n = 0; ; n++) {
      byte[] garbage = new byte[128 << 10];
      garbage[(int) (n % garbage.length)] = 1;
      cache[ThreadLocalRandom.current().nextInt(cache.length)] = new byte[64 << 10];
      if (n % 4 == 0) Thread.sleep(1);
    }
  }
}
