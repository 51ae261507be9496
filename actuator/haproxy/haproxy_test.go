package haproxy

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/haproxy"
)

func open(t *testing.T, socket, backend, server string) *MaxConn {
	t.Helper()
	k, err := Open(Config{Socket: socket, Backend: backend, Server: server})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func reopen(undo []byte) (actuator.Knob, error) { return actuator.OrNil(Reopen(undo)) }

func TestAServerOfARealHAProxyMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		h := real(t)
		return knobtest.Fixture{Knob: open(t, h.Socket, "shop", "web1"), Reopen: reopen, Least: 1, Most: 1000, Vanish: h.Stop}
	})
}

func TestAServerOfAnImitationMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		i, socket := imitate(t)
		return knobtest.Fixture{
			Knob: open(t, socket, "shop", "web1"), Reopen: reopen, Least: 1, Most: 1000,
			Vanish: func() { i.do(func() { delete(i.limits, "web1") }) },
		}
	})
}

func TestAReloadForgetsTheLimitAndIsAnotherInstance(t *testing.T) {
	h := real(t)
	at := actuator.Location{Root: h.Socket, Path: "shop/web1/*"}
	before, err := Kind().Find(t.Context(), at)
	if err != nil || len(before) != 1 || before[0].Name != "web1" {
		t.Fatalf("%+v, %v", before, err)
	}
	k := open(t, h.Socket, "shop", "web1")
	if err := k.Write(t.Context(), trimtab.Units(7)); err != nil {
		t.Fatal(err)
	}
	undo := k.Undo()
	h.Configure(t, configured(12))
	h.Reload(t)
	for what, err := range map[string]error{"read": k.Probe(t.Context()), "write": k.Write(t.Context(), trimtab.Units(3))} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of the process before: %v, want that it is gone", what, err)
		}
	}
	if again, err := Reopen(undo); err != nil || !errors.Is(again.Write(t.Context(), trimtab.Unlimited()), os.ErrNotExist) {
		t.Errorf("a restore reached the process after: %v", err)
	}
	after, err := Kind().Find(t.Context(), at)
	if err != nil || len(after) != 1 || after[0].Name != "web1" || after[0].ID == before[0].ID {
		t.Errorf("after the reload %+v, %v, before it %+v", after, err, before)
	}
	if v, err := open(t, h.Socket, "shop", "web1").Read(t.Context()); err != nil || v != trimtab.Units(12) {
		t.Errorf("the process after has %v, %v, want what its configuration says", v, err)
	}
}

func TestAllServersOfABackendAreInstances(t *testing.T) {
	h := real(t)
	found, err := Kind().Find(t.Context(), actuator.Location{Root: h.Socket, Path: "shop/*"})
	if err != nil || len(found) != 2 || found[0].Name != "web1" || found[1].Name != "web2" || found[0].ID == found[1].ID {
		t.Fatalf("%+v, %v", found, err)
	}
	k, err := Kind().Open(actuator.Location{Root: h.Socket, Path: "shop/*"}.Instance("web2"), trimtab.Concurrency)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(30) {
		t.Errorf("%v, %v", v, err)
	}
}

// HAProxy lets both have one name, and show stat then tells of the first.
func TestABackendIsToldFromAFrontendOfItsName(t *testing.T) {
	h := real(t)
	k := open(t, h.Socket, "moving", "web1")
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(50) {
		t.Fatalf("%v, %v", v, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(20)); err != nil {
		t.Error(err)
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(20) {
		t.Errorf("%v, %v", v, err)
	}
}

// Two processes of this host that come through different sockets turn one thing.
func TestAPlaceIsTheSameThroughAnySocket(t *testing.T) {
	h := real(t)
	one, err := open(t, h.Socket, "shop", "web1").Location()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := open(t, h.Socket+".operator", "shop", "web1").Location(); err != nil || one != two {
		t.Errorf("%q and %q, %v", one, two, err)
	}
}

func TestWhatIsMissingIsSaidWithWhatToDo(t *testing.T) {
	h := real(t)
	for _, c := range []struct{ socket, backend, server, want string }{
		{h.Socket + ".none", "shop", "web1", "start HAProxy"},
		{h.Socket, "nope", "web1", "no backend nope"},
		{h.Socket, "shop", "nope", "no server nope"},
		{h.Socket + ".operator", "shop", "web1", "level admin"},
		{h.Socket + ".http", "shop", "web1", "is this its stats socket"},
	} {
		k := open(t, c.socket, c.backend, c.server)
		if err := k.MayWrite(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s/%s: %v, want %q in it", c.socket, c.backend, c.server, err, c.want)
		}
		if err := k.Write(t.Context(), trimtab.Units(3)); err == nil {
			t.Errorf("%s %s/%s: written", c.socket, c.backend, c.server)
		}
	}
	if v, err := open(t, h.Socket, "shop", "web1").Read(t.Context()); err != nil || !v.Unlimited {
		t.Errorf("web1 has %v, %v", v, err)
	}
}

func TestASocketThatHangsCostsNoMoreThanItsDeadline(t *testing.T) {
	i, socket := imitate(t)
	i.do(func() { i.silent = true })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := open(t, socket, "shop", "web1").Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the time was over", err)
	}
}

func TestAnAnswerWithoutEndIsAnError(t *testing.T) {
	i, socket := imitate(t)
	i.do(func() { i.says = []byte(strings.Repeat("x", haproxy.MaxAnswer+1)) })
	if _, err := open(t, socket, "shop", "web1").Read(t.Context()); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("%v", err)
	}
}

// A process that began between the look and the write keeps the limit of its configuration.
func TestAWriteThatMeetsTheNextProcessIsPutBack(t *testing.T) {
	i, socket := imitate(t)
	k := open(t, socket, "shop", "web2")
	if err := k.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.do(func() { i.pid = "101" })
	if err := k.set(t.Context(), "shop", trimtab.Units(3)); !errors.Is(err, trimtab.ErrStale) {
		t.Errorf("%v, want stale", err)
	}
	i.do(func() {
		if i.limits["web2"] != 30 {
			t.Errorf("it has %d", i.limits["web2"])
		}
	})
}

// HAProxy takes 0 for no limit, and every number modulo 2³².
func TestNoLimitThatIsSentMeansAnotherToHAProxy(t *testing.T) {
	k := open(t, "/s", "shop", "web1")
	for v, want := range map[float64]float64{0: 1, 0.4: 1, 1.5: 2, 1e12: math.MaxUint32} {
		if got := k.Nearest(trimtab.Units(v)); got != trimtab.Units(want) {
			t.Errorf("nearest to %v is %v, want %v", v, got, want)
		}
	}
}

func TestNamesThatWouldBeCommandsAreRefused(t *testing.T) {
	for _, c := range []Config{
		{"/s", "shop", "web1;shutdown sessions server shop/web1"}, {"/s", "a b", "web1"}, {"/s", "shop", "x\ny"}, {"/s", "", "x"}, {"/s", "shop", ""},
		{"s", "shop", "web1"}, {"/" + strings.Repeat("s", haproxy.MaxSocketPath), "shop", "web1"}, {"host:0", "shop", "web1"}, {":9999", "shop", "web1"},
	} {
		if _, err := Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
