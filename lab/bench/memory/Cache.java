import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.*;

/** A cache with HTTP before it: one value for each user, dropped some time after it was made. */
public class Cache {
  record Entry(byte[] value, long until) {}

  public static void main(String[] args) throws Exception {
    String[] at = args[0].split(":");
    int bytes = Integer.parseInt(args[1]);
    long kept = Long.parseLong(args[2]);
    Map<String, Entry> entries = new ConcurrentHashMap<>();
    Executors.newSingleThreadScheduledExecutor().scheduleAtFixedRate(
        () -> entries.values().removeIf(e -> e.until() < System.currentTimeMillis()), 1, 1, TimeUnit.SECONDS);
    HttpServer server = HttpServer.create(new InetSocketAddress(at[0], Integer.parseInt(at[1])), 1024);
    server.createContext("/", exchange -> {
      Entry e = entries.computeIfAbsent(exchange.getRequestURI().getQuery(), user -> {
        byte[] value = new byte[bytes];
        java.util.Arrays.fill(value, (byte) user.hashCode());
        return new Entry(value, System.currentTimeMillis() + kept);
      });
      byte[] answer = ("" + e.value()[bytes / 2]).getBytes();
      exchange.sendResponseHeaders(200, answer.length);
      exchange.getResponseBody().write(answer);
      exchange.close();
    });
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }
}
