package haproxy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/haproxy/haproxytest"
	"github.com/trimtab/trimtab/internal/proctest"
)

// rated starts a HAProxy with the lines of a backend shop, and returns it and the path of its map.
func rated(t *testing.T) (*haproxytest.Program, string) {
	t.Helper()
	c := haproxy.Classes{Backend: "shop", Map: filepath.Join(proctest.SocketDir(t), "map"), Header: "x-priority", Names: []string{"critical", "low"}}
	if err := os.WriteFile(c.Map, []byte(c.File()), 0o600); err != nil {
		t.Fatal(err)
	}
	return haproxytest.Start(t, "shop", haproxytest.Front+c.Lines(time.Second)+"  server one 127.0.0.1:9\n"), c.Map
}

func openRate(t *testing.T, c RateConfig) *Rate {
	t.Helper()
	k, err := OpenRate(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestARateOfARealHAProxyMeetsTheContractOfKnobs(t *testing.T) {
	for name, class := range map[string]string{"all": "", "one": "low"} {
		t.Run(name, func(t *testing.T) {
			knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
				h, file := rated(t)
				return knobtest.Fixture{
					Knob:   openRate(t, RateConfig{Socket: h.Socket, Backend: "shop", Map: file, Class: class}),
					Reopen: func(undo []byte) (actuator.Knob, error) { return Kind().Reopen(undo) }, Least: 1, Most: 1000, Vanish: h.Stop,
				}
			})
		})
	}
}

// untilOf returns when HAProxy ends the rate.
func untilOf(t *testing.T, k *Rate) uint64 {
	t.Helper()
	read, err := k.entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return read[haproxy.RateUntilKey]
}

func TestOnlyTheKnobThatSetARateRenewsIt(t *testing.T) {
	h, file := rated(t)
	c := RateConfig{Socket: h.Socket, Backend: "shop", Map: file}
	k, other := openRate(t, c), openRate(t, c)
	if err := k.Write(t.Context(), trimtab.Units(20)); err != nil {
		t.Fatal(err)
	}
	short := time.Now().Add(3 * time.Second).Unix()
	for _, x := range []struct {
		k      *Rate
		renews bool
	}{{other, false}, {k, true}} {
		if _, err := haproxy.Ask(t.Context(), h.Socket, c.rate().SetRate("", 20, short)...); err != nil {
			t.Fatal(err)
		}
		if v, err := x.k.Read(t.Context()); err != nil || v != trimtab.Units(20) {
			t.Errorf("%v, %v", v, err)
		}
		if got := untilOf(t, k); (got > uint64(short)) != x.renews {
			t.Errorf("it ends at %d, before at %d; renewed: %v", got, short, x.renews)
		}
	}
	if err := other.Recall(k.Undo()); err != nil {
		t.Fatal(err)
	}
	if _, err := haproxy.Ask(t.Context(), h.Socket, c.rate().SetRate("", 20, short)...); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Read(t.Context()); err != nil || untilOf(t, k) <= uint64(short) {
		t.Errorf("the next trimtab did not take it over: %v", err)
	}
}

func TestARateThatEndedAndAReloadedHAProxyHaveNoLimit(t *testing.T) {
	h, file := rated(t)
	c := RateConfig{Socket: h.Socket, Backend: "shop", Map: file}
	k := openRate(t, c)
	if _, err := haproxy.Ask(t.Context(), h.Socket, c.rate().SetRate("", 20, time.Now().Unix()-1)...); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Read(t.Context()); err != nil || !v.Unlimited {
		t.Errorf("its lease is over, and it has %v, %v", v, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(20)); err != nil {
		t.Fatal(err)
	}
	h.Reload(t)
	if v, err := k.Read(t.Context()); err != nil || !v.Unlimited {
		t.Errorf("after a reload it has %v, %v", v, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(20)); err != nil {
		t.Errorf("and cannot be set again: %v", err)
	}
}

func TestARateThatHAProxyCannotHaveIsSaid(t *testing.T) {
	h, file := rated(t)
	for _, c := range []struct {
		RateConfig
		want string
	}{
		{RateConfig{Socket: h.Socket, Backend: "shop", Map: file, Class: "nobody"}, "no entry rate-nobody"},
		{RateConfig{Socket: h.Socket, Backend: "shop", Map: file + "x"}, "trimtab init haproxy"},
		{RateConfig{Socket: h.Socket + ".none", Backend: "shop", Map: file}, "start HAProxy"},
	} {
		k := openRate(t, c.RateConfig)
		if err := k.MayWrite(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q in it", c.RateConfig, err, c.want)
		}
		if err := k.Write(context.Background(), trimtab.Units(3)); err == nil {
			t.Errorf("%+v: written", c.RateConfig)
		}
	}
	for _, c := range []RateConfig{{"s", "shop", "/m", ""}, {"/s", "a b", "/m", ""}, {"/s", "shop", "m", ""}, {"/s", "shop", "/m", "a;b"}} {
		if _, err := OpenRate(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
