package network_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/actuator/network"
)

const folder = "/run/netns"

// skip says what was not tried, and fails where it must be.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("TRIMTAB_GUEST") != "" {
		t.Fatalf("in the guest this must work: "+format, args...)
	}
	t.Skipf("not tried: "+format, args...)
}

// run runs a program that must succeed.
func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// pair makes two network namespaces with a pair of veth between them, eth0 in each;
// else it skips.
func pair(t *testing.T) (a, b string) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "network namespaces need root")
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, "%v (package iproute2)", err)
		}
	}
	base := fmt.Sprintf("trimtab-test-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	a, b = base+"-a", base+"-b"
	for _, ns := range []string{a, b} {
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			skip(t, "make a network namespace: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() }) // a test may have deleted it
	}
	run(t, "ip", "-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b)
	for i, ns := range []string{a, b} {
		run(t, "ip", "-n", ns, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "eth0")
		run(t, "ip", "-n", ns, "link", "set", "eth0", "up")
	}
	return a, b
}

func open(t *testing.T, ns string) *network.Interface {
	t.Helper()
	k, err := network.Open(network.Config{Root: folder, Namespace: ns, Interface: "eth0"})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func reopen(undo []byte) (actuator.Knob, error) { return actuator.OrNil(network.Reopen(undo)) }

// disciplines is what tc says of eth0.
func disciplines(t *testing.T, ns string) (all []struct {
	Kind, Handle string
	Root         bool
	Options      struct{ Rate, Burst float64 }
}) {
	t.Helper()
	text := run(t, "tc", "-n", ns, "-j", "qdisc", "show", "dev", "eth0")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}

func TestAnInterfaceMeetsTheContractOfKnobs(t *testing.T) {
	pair(t) // skips
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		a, _ := pair(t)
		return knobtest.Fixture{
			Knob: open(t, a), Reopen: reopen, Least: 2000, Most: 1e10,
			Vanish: func() { run(t, "ip", "-n", a, "link", "del", "eth0") },
		}
	})
}

func TestTheKernelHasWhatWasWrittenAndItsDefaultAfterwards(t *testing.T) {
	a, _ := pair(t)
	before := fmt.Sprint(disciplines(t, a))
	k := open(t, a)
	for _, rate := range []float64{1500, 125_000, 12_500_000, 5e9, 2e10} {
		if err := k.Write(t.Context(), trimtab.Units(rate)); err != nil {
			t.Fatal(err)
		}
		all := disciplines(t, a)
		if len(all) != 1 || all[0].Kind != "tbf" || all[0].Handle != "7472:" || all[0].Options.Rate != rate || all[0].Options.Burst < 3000 {
			t.Errorf("wrote %v, tc says %+v", rate, all)
		}
	}
	again, err := reopen(k.Undo())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Write(t.Context(), trimtab.Unlimited()); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprint(disciplines(t, a)); after != before {
		t.Errorf("before %s, afterwards %s", before, after)
	}
}

func TestADisciplineOfSomebodyElseIsLeftAlone(t *testing.T) {
	a, _ := pair(t)
	k := open(t, a)
	for _, other := range []string{"handle 1: htb default 1", "handle 9: tbf rate 8mbit burst 64kb latency 50ms"} {
		run(t, append([]string{"tc", "-n", a, "qdisc", "replace", "dev", "eth0", "root"}, strings.Fields(other)...)...)
		before := fmt.Sprint(disciplines(t, a))
		_, err := k.Read(t.Context())
		for _, err := range []error{err, k.Probe(t.Context()), k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(1e6)), k.Write(t.Context(), trimtab.Unlimited())} {
			if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "not trimtab's") {
				t.Errorf("%s: error %v", other, err)
			}
		}
		if after := fmt.Sprint(disciplines(t, a)); after != before {
			t.Errorf("before %s, afterwards %s", before, after)
		}
		run(t, "tc", "-n", a, "qdisc", "del", "dev", "eth0", "root")
	}
}

func TestAnInterfaceThatIsGoneIsNotThere(t *testing.T) {
	a, _ := pair(t)
	k := open(t, a)
	run(t, "ip", "-n", a, "link", "del", "eth0")
	if _, err := k.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("interface: %v", err)
	}
	run(t, "ip", "netns", "del", a)
	if _, err := k.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("namespace: %v", err)
	}
	if _, err := k.Location(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("place: %v", err)
	}
}

func TestInstancesAreNamespacesOrInterfaces(t *testing.T) {
	a, _ := pair(t)
	base := strings.TrimSuffix(a, "-a")
	kind := network.Kind()
	for _, c := range []struct{ path, want string }{
		{base + "-*/eth0", "[a b]"}, {a + "/eth*", "[0]"}, {a + "/veth*", "[]"}, {"none-of-these-*/eth0", "[]"},
	} {
		found, err := kind.Find(t.Context(), actuator.Location{Root: folder, Path: c.path})
		var names []string
		for _, i := range found {
			names = append(names, i.Name)
			knob, err := kind.Open(actuator.Location{Root: folder, Path: c.path}.Instance(i.Name), trimtab.Network)
			if err == nil {
				err = knob.Probe(t.Context())
			}
			if err != nil {
				t.Errorf("%s of %s: %v", i.Name, c.path, err)
			}
		}
		if err != nil || fmt.Sprint(names) != c.want {
			t.Errorf("%s: %v, %v, want %s", c.path, names, err, c.want)
		}
	}
	if found, err := kind.Find(t.Context(), actuator.Location{Root: filepath.Join(t.TempDir(), "none"), Path: "*/eth0"}); len(found) > 0 || err != nil {
		t.Errorf("without a folder: %v, %v", found, err)
	}
}

// inside runs do in a network namespace. A socket that it makes stays in there.
func inside[T any](t *testing.T, ns string, do func() (T, error)) T {
	t.Helper()
	type result struct {
		v   T
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		var r result
		h, err := netns.GetFromPath(filepath.Join(folder, ns))
		if err == nil {
			err = netns.Set(h)
		}
		if r.err = err; err == nil {
			r.v, r.err = do()
		}
		done <- r
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.v
}

// sends returns how many bytes a second reach b from a over TCP while it sends for
// that long.
func sends(t *testing.T, a, b string, long time.Duration) float64 {
	t.Helper()
	address := "10.77.0.1:0"
	if strings.HasSuffix(b, "-b") {
		address = "10.77.0.2:0"
	}
	l := inside(t, b, func() (net.Listener, error) { return net.Listen("tcp4", address) })
	defer l.Close()
	out := inside(t, a, func() (net.Conn, error) { return net.DialTimeout("tcp4", l.Addr().String(), 10*time.Second) })
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	go func() {
		block := make([]byte, 64<<10)
		for ctx.Err() == nil {
			if _, err := out.Write(block); err != nil {
				return
			}
		}
		out.Close()
	}()
	started := time.Now()
	n, err := io.Copy(io.Discard, in)
	if err != nil {
		t.Fatal(err)
	}
	return float64(n) / time.Since(started).Seconds()
}

// A real transfer between two real namespaces keeps to the rate, and is free again
// afterwards; the other direction always is.
func TestATransferKeepsToTheRate(t *testing.T) {
	a, b := pair(t)
	k := open(t, a)
	const rate = 5e6
	free := sends(t, a, b, 300*time.Millisecond)
	if free < 4*rate {
		skip(t, "this machine sends %.3g bytes/s without a limit, too few to tell", free)
	}
	if err := k.Write(t.Context(), trimtab.Units(rate)); err != nil {
		t.Fatal(err)
	}
	limited := sends(t, a, b, 1500*time.Millisecond)
	back := sends(t, b, a, 300*time.Millisecond)
	if err := k.Write(t.Context(), trimtab.Unlimited()); err != nil {
		t.Fatal(err)
	}
	again := sends(t, a, b, 300*time.Millisecond)
	t.Logf("without a limit %.3g bytes/s, with one of %.3g %.3g, the other way %.3g, without again %.3g", free, rate, limited, back, again)
	if limited > 1.25*rate || limited < rate/3 {
		t.Errorf("with a limit of %.3g bytes/s %.3g went", rate, limited)
	}
	if back < 2*limited || again < 2*limited {
		t.Errorf("limited %.3g, the other way %.3g, without the limit again %.3g: the limit should not bind these", limited, back, again)
	}
}

func TestANameThatIsNoneIsRefused(t *testing.T) {
	for _, c := range []network.Config{
		{}, {Interface: "a/b"}, {Interface: ".."}, {Interface: "eth0*"}, {Interface: strings.Repeat("x", 16)},
		{Interface: "eth0", Namespace: "../x", Root: folder}, {Interface: "eth0", Namespace: "x", Root: "relative"}, {Interface: "eth0", Namespace: "x"},
	} {
		if k, err := network.Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v, %v", c, k, err)
		}
	}
}

func FuzzAnUndoIsReadTotally(f *testing.F) {
	f.Add([]byte(`{"kind":"network-tbf/1","root":"/run/netns","namespace":"a","interface":"eth0"}`))
	f.Add([]byte(`{"kind":"network-tbf/1","namespace":"..","interface":"/"}`))
	f.Fuzz(func(t *testing.T, undo []byte) {
		k, err := network.Reopen(undo)
		if err != nil {
			return
		}
		again, err := network.Reopen(k.Undo())
		if err != nil || again.String() != k.String() {
			t.Fatalf("%q is %v, and again %v, %v", undo, k, again, err)
		}
	})
}
