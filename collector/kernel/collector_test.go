//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
)

// TestMain makes of this program the services that the tests watch, too.
func TestMain(m *testing.M) {
	if next, ok := os.LookupEnv("TEST_KERNEL_SERVE"); ok {
		serve(next)
	}
	leak.Main(m)
}

// Times that the two services take.
const frontTakes, storeTakes = 5 * time.Millisecond, 20 * time.Millisecond

// serve answers at a free port, which it prints; next is what it calls for it.
func serve(next string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if next == "" {
			<-time.After(storeTakes)
			return
		}
		<-time.After(frontTakes)
		r, err := http.Get("http://" + next)
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(w, r.Body)
		_ = r.Body.Close()
	})))
}

// service starts a copy of this program under a name of its own.
func service(t *testing.T, name, next string) (address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The kernel calls a process what its file is called.
	file := t.TempDir() + "/" + name
	if err := os.Symlink(self, file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), file)
	cmd.Env = append(os.Environ(), "TEST_KERNEL_SERVE="+next)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscan(out, &address); err != nil {
		t.Fatal(err)
	}
	return address
}

// open attaches to this kernel, or skips the test with the kernel's reason.
func open(t *testing.T, b *spantest.Bus, components ...Component) *Collector {
	t.Helper()
	set := metric.NewSet()
	sink, err := collector.Open(collector.Config{Bus: b, Metrics: set})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(Config{Sink: sink, Host: "h1", Components: components, Metrics: set})
	if errors.Is(err, trimtab.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequestsOfProcessesThatAreNotInstrumentedBecomeTraces(t *testing.T) {
	b := &spantest.Bus{}
	c := open(t, b, Component{Name: "front", Program: "tt-front"}, Component{Name: "store", Program: "tt-store"})
	store := service(t, "tt-store", "")
	front := service(t, "tt-front", store)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, c.Close()); err != nil {
			t.Error(err)
		}
	})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	deadline := time.Now().Add(time.Minute)
	for {
		r, err := client.Get("http://" + front)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if whole(t, spantest.Unpack(b.Frames())) >= 5 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no whole trace in %d spans", len(spantest.Unpack(b.Frames())))
		}
	}
}

// whole counts the traces with a request of front, its call, and what store served
// for it, and checks that they belong together and how long they took.
func whole(t *testing.T, spans []spantest.Span) (n int) {
	t.Helper()
	byID := map[[8]byte]spantest.Span{}
	for _, s := range spans {
		byID[s.SpanID] = s
	}
	for _, served := range spans {
		call, ok := byID[served.Parent]
		request, known := byID[call.Parent]
		if served.Attrs["service.name"] != "store" || !ok || !known {
			continue
		}
		n++
		if served.Kind != trimtab.SpanServer || call.Kind != trimtab.SpanClient || request.Kind != trimtab.SpanServer || request.Attrs["service.name"] != "front" ||
			request.TraceID != served.TraceID || request.Parent != [8]byte{} || request.Attrs["host.name"] != "h1" {
			t.Errorf("%+v of %+v of %+v", served, call, request)
		}
		// What sleeps takes no less: the bounds are one-sided. The kernel tells of a SEND once it is
		// done, when the receiver may have read all of it: a call may end before what it asked for.
		own := time.Duration(request.End - request.Start - (call.End - call.Start))
		if took := time.Duration(served.End - served.Start); took < storeTakes || own < frontTakes {
			t.Errorf("store took %v, front of its own %v", took, own)
		}
		if age := time.Since(time.Unix(0, served.End)); age < 0 || age > time.Hour {
			t.Errorf("ended %v ago", age)
		}
	}
	return n
}

func TestAComponentThatNamesNoProcessesIsRefused(t *testing.T) {
	set := metric.NewSet()
	sink, err := collector.Open(collector.Config{Bus: &spantest.Bus{}, Metrics: set})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{}, {Sink: sink, Metrics: set, Components: []Component{{Name: "front"}}}, {Sink: sink, Metrics: set, Components: []Component{{Program: "front"}}}} {
		if _, err := Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c.Components, err)
		}
	}
}

func TestWhatAKernelDoesNotDescribeIsNamed(t *testing.T) {
	if offset, ok := offsetOf([]btf.Member{{Name: "a"}, {Type: &btf.Union{Members: []btf.Member{{Name: "b", Offset: 16}}}, Offset: 32}}, "b"); offset != 6 || !ok {
		t.Errorf("%d %v, want 6 bytes", offset, ok)
	}
	if _, ok := offsetOf([]btf.Member{{Name: "a"}}, "b"); ok {
		t.Error("found what is not there")
	}
}
