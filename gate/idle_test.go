//go:build integration

package gate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

const (
	idleConnections = 10_000
	idleClientOf    = "TRIMTAB_TEST_IDLE_CLIENT_OF"
	allOpen         = "all are open"
)

// TestIdleClient is the process that has the other ends: one process may not open enough files for both.
func TestIdleClient(t *testing.T) {
	address := os.Getenv(idleClientOf)
	if address == "" {
		t.Skip("a part of TestTenThousandIdleConnectionsTakeBoundedMemoryAndHoldNobodyUp")
	}
	for i := range idleConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 256), nil)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	fmt.Println(allOpen)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other process has looked
}

func TestTenThousandIdleConnectionsTakeBoundedMemoryAndHoldNobodyUp(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }), func(c *Config) { c.Connections = idleConnections + 100 })
	before, goroutines := heap(), runtime.NumGoroutine()
	client := exec.Command(os.Args[0], "-test.run=^TestIdleClient$")
	client.Env = append(os.Environ(), idleClientOf+"="+g.Address())
	client.Stderr = os.Stderr
	hold, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = hold.Close()
		if err := client.Wait(); err != nil {
			t.Errorf("the clients: %v", err)
		}
	})
	if line, _ := bufio.NewReader(said).ReadString('\n'); line != allOpen+"\n" {
		t.Fatalf("the clients say %q", line)
	}
	until(t, "not all are parked", func() bool { return parkedConnections(g) == idleConnections })
	if now := runtime.NumGoroutine(); now > goroutines+100 {
		t.Errorf("%d goroutines, before %d", now, goroutines)
	}
	grown := heap() - before
	t.Logf("%d KiB more are in use", grown>>10)
	if grown > 48<<20 {
		t.Errorf("want at most 48 MiB")
	}
	if _, body := get(t, g.url("/")); body != "here" {
		t.Errorf("%q", body)
	}
}
