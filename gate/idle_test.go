//go:build integration

package gate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
)

// heap returns the bytes that are in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func TestTenThousandIdleConnectionsTakeBoundedMemoryAndHoldNobodyUp(t *testing.T) {
	const n = 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Max < 2*n+500 {
		t.Skipf("both ends of %d connections need %d open files, and %d are allowed (%v)", n, 2*n+500, files.Max, err)
	}
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }), func(c *Config) { c.Connections = n + 100 })
	before, goroutines := heap(), runtime.NumGoroutine()
	for i := range n {
		c, err := net.Dial("tcp", g.Address())
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 256), nil)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	until(t, "not all are parked", func() bool { return parkedConnections(g) == n })
	if now := runtime.NumGoroutine(); now > goroutines+100 {
		t.Errorf("%d goroutines, before %d", now, goroutines)
	}
	if grown := heap() - before; grown > 48<<20 { // both ends
		t.Errorf("%d MiB more are in use", grown>>20)
	}
	if _, body := get(t, g.url("/")); body != "here" {
		t.Errorf("%q", body)
	}
}
