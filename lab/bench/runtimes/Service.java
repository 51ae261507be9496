import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/** A service with a cache: PORT, the number of blocks of 64 KiB in the cache. */
public class Service {
  public static void main(String[] a) throws Exception {
    byte[][] cache = new byte[Integer.parseInt(a[1])][];
    for (int i = 0; i < cache.length; i++) cache[i] = new byte[64 << 10];
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(a[0])), 1024);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", exchange -> {
      ThreadLocalRandom random = ThreadLocalRandom.current();
      byte[] from = cache[random.nextInt(cache.length)], work = new byte[256 << 10];
      for (int i = 0; i < 4; i++) System.arraycopy(from, 0, work, i << 16, 1 << 16);
      int sum = 0;
      for (byte b : work) sum += b;
      if (random.nextInt(4) == 0) cache[random.nextInt(cache.length)] = new byte[64 << 10];
      byte[] answer = ("ok " + sum + "\n").getBytes();
      exchange.sendResponseHeaders(200, answer.length);
      exchange.getResponseBody().write(answer);
      exchange.close();
    });
    server.start();
  }
}
