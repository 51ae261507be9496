//go:build integration

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/trial"
)

// namespaceEnv tells this test's own process in its network namespace which
// others there are.
const namespaceEnv = "TRIMTAB_TEST_NAMESPACES"

const (
	hereAddress, thereAddress = "10.203.0.1", "10.203.0.2"
	cutLease                  = 10 * time.Second
)

// R5: the link between trimtab and the bus is cut for 1 to 300 s, both ways or
// one, under load. What was given is held until the lease ends; then the
// baselines come back and stay until the link is whole. The times are those from
// the end of the lease to the baselines, at most: the last plan came before the
// cut.
func TestACutLinkEndsInTheBaselinesWhenTheLeaseEnds(t *testing.T) {
	if os.Getenv(namespaceEnv) == "" {
		inNamespaces(t)
		return
	}
	here, there, _ := strings.Cut(os.Getenv(namespaceEnv), " ")
	tr := trial.Start(t, 2)
	p := prepare(t, anyQuotas(t), "")
	p.serveBus(thereAddress+":4222", "nsenter", "--net=/run/netns/"+there)
	p.start()
	p.serve()
	for i := range tr.N {
		length := []time.Duration{time.Second, 15 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}[i%5]
		ways := []string{"both ways", "to the bus", "from the bus"}[i/5%3]
		p.until("both limits moved", p.moved)
		var heal []func()
		if ways != "from the bus" {
			heal = append(heal, misdirect(t, here, "cut0", thereAddress))
		}
		if ways != "to the bus" {
			heal = append(heal, misdirect(t, there, "cut0", hereAddress))
		}
		began, back := time.Now(), time.Duration(0)
		p.during(length, func() {
			h, m := p.limits()
			switch {
			case h == 0.5 && m == 0.5 && back == 0:
				back = time.Since(began)
			case back > 0 && (h != 0.5 || m != 0.5):
				tr.Failf("cut %s for %v: moved to %v and %v after the baselines were back", ways, length, h, m)
				back = 0
			}
		})
		if length > cutLease && back == 0 {
			p.until("the baselines, though late", p.restored)
			back = time.Since(began)
		}
		for _, f := range heal {
			f()
		}
		if length > cutLease {
			tr.Took(max(0, back-cutLease))
		} else {
			tr.Case()
		}
		t.Logf("cut %s for %v: baselines back after %v", ways, length, back.Round(time.Millisecond))
	}
	p.until("both limits moved", p.moved)
	p.stop()
	if err := p.restored(); err != nil {
		t.Errorf("not at the baselines: %v\n%s", err, p.log())
	}
	answered, written := p.accounts()
	tr.Notef("%d plans answered, %d writes", answered, written)
}

// misdirect makes a namespace send what is for an address to nobody, in
// silence, until heal is called.
func misdirect(t *testing.T, namespace, device, address string) (heal func()) {
	t.Helper()
	ip(t, "-n", namespace, "neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", device, "nud", "permanent")
	return func() { ip(t, "-n", namespace, "neigh", "del", address, "dev", device) }
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// inNamespaces runs this test in a network namespace that is linked to another.
func inNamespaces(t *testing.T) {
	t.Helper()
	t.Parallel()
	here, there := fmt.Sprint("trimtab-a", os.Getpid()), fmt.Sprint("trimtab-b", os.Getpid())
	for _, name := range []string{here, there} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("make a network namespace: %v: %s", err, out)
		}
		t.Cleanup(func() { ip(t, "netns", "del", name) })
		ip(t, "-n", name, "link", "set", "lo", "up")
	}
	ip(t, "link", "add", "cut0", "netns", here, "type", "veth", "peer", "name", "cut0", "netns", there)
	for name, address := range map[string]string{here: hereAddress, there: thereAddress} {
		ip(t, "-n", name, "address", "add", address+"/30", "dev", "cut0")
		ip(t, "-n", name, "link", "set", "cut0", "up")
	}
	cmd := exec.Command("nsenter", "--net=/run/netns/"+here, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), namespaceEnv+"="+here+" "+there)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
