// A service of a JVM with eight threads: for each unit of work it makes, sorts
// and counts texts, most of which are garbage at once. Some are kept for a
// while, so that collections have something to copy.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

public class Service {
  // About 16 MiB.
  static final AtomicReferenceArray<Map<String, Integer>> kept = new AtomicReferenceArray<>(4000);
  static final AtomicInteger turn = new AtomicInteger();

  static int unit(int seed) {
    List<String> list = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      list.add("item " + (i * 7919 + seed) % 997);
    }
    Collections.sort(list);
    Map<String, Integer> counts = new HashMap<>();
    for (String s : list) {
      counts.merge(s, 1, Integer::sum);
    }
    kept.set(Math.floorMod(turn.getAndIncrement(), kept.length()), counts);
    return counts.size();
  }

  static void answer(HttpExchange exchange) throws IOException {
    int work = Integer.parseInt(exchange.getRequestURI().getQuery().substring("work=".length()));
    int sum = 0;
    for (int k = 0; k < work; k++) {
      sum += unit(k);
    }
    byte[] text = (sum > 0 ? "done " + work + "\n" : "no\n").getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, text.length);
    try (OutputStream out = exchange.getResponseBody()) {
      out.write(text);
    }
  }

  public static void main(String[] args) throws IOException {
    String[] address = args[0].split(":");
    HttpServer server = HttpServer.create(new InetSocketAddress(address[0], Integer.parseInt(address[1])), 4096);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", Service::answer);
    server.start();
  }
}
