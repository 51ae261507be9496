// Package memlimit lets trimtab set the memory limit of a Go program (GOMEMLIMIT) while it runs. The
// program serves [Handler] at a Unix socket that only its own user may use:
//
//	go func() { log.Fatal(memlimit.ListenAndServe("/run/shop/memlimit.sock")) }()
//
// The configuration of trimtab names that socket: memory: {runtime: {go: /run/shop/memlimit.sock}}.
// The package imports the standard library only, so that this file may also be copied.
//
// GET returns the state, PUT with {"limit": BYTES} sets the limit first, and POST gives unused memory
// back to the kernel first, after a collection. The package decides nothing.
package memlimit

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
)

// State is the answer of the handler, in bytes: the limit (math.MaxInt64: none), the memory that the
// Go runtime holds under it, and the part of that which the last collection found in use.
type State struct {
	PID   int   `json:"pid"`
	Limit int64 `json:"limit"`
	Held  int64 `json:"held"`
	Live  int64 `json:"live"`
}

// Handler returns the handler. Whoever can reach it can slow the program down.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set := State{Limit: -1} // -1 only reads the limit
		switch r.Method {
		case http.MethodPut:
			err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&set)
			if err != nil || set.Limit <= 0 {
				http.Error(w, `want {"limit": BYTES}`, http.StatusBadRequest)
				return
			}
			debug.SetMemoryLimit(set.Limit)
		case http.MethodPost:
			debug.FreeOSMemory()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(state())
	})
}

func state() State {
	v := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(v)
	of := func(i int) int64 { return int64(v[i].Value.Uint64()) }
	held := of(0) - of(1)
	return State{os.Getpid(), debug.SetMemoryLimit(-1), held, held - of(2) - of(3) - of(4) + of(5)}
}

// ListenAndServe serves the handler at a Unix socket of mode 0600, and replaces one that an earlier
// process left there. It returns only with an error.
func ListenAndServe(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	mask := syscall.Umask(0o177) // the socket is never open to others, not even for a moment
	l, err := net.Listen("unix", path)
	syscall.Umask(mask)
	if err != nil {
		return err
	}
	return http.Serve(l, Handler())
}
