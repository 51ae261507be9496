package view

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// advised is a view whose newest advice on a workload is this.
func advised(workload, unit string, amounts map[string]trimtab.Amount) *Model {
	v := New(Config{Pool: "pool", Resource: "cpu", Capacity: 8})
	h := &trimtab.Holding{Host: "h", Time: noon}
	p := at(0)
	for _, resource := range sortedKeys(amounts) {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: workload, Resource: resource}, Knob: "cgroup v2 shop.slice/of-another.service", Unit: unit, Now: trimtab.Units(1), Since: noon})
		a := at(0, workload).Actions[0]
		a.Resource, a.Set = resource, amounts[resource]
		p.Actions = append(p.Actions, a)
	}
	v.Observe(h)
	v.Observe(p)
	return v
}

// resources is what a patch of a Deployment says.
type resources struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name      string
					Resources struct{ Requests, Limits map[string]string }
				}
			}
		}
	}
}

func TestAPatchSaysTheAdviceInTheWordsOfSystemdAndKubernetes(t *testing.T) {
	p, advised, ok := advised("shop", "checkout.service", map[string]trimtab.Amount{
		"cpu": trimtab.Units(1.2341), "memory": trimtab.Units(512 << 20), "workers": trimtab.Units(4),
	}).Patch("shop")
	if !ok || !advised || p.Unit != "checkout.service" || p.Plan != "1-1" {
		t.Fatalf("%+v", p)
	}
	for _, want := range []string{"[Service]\n", "\nCPUQuota=124%\n", "\nMemoryMax=536870912\n", "/etc/systemd/system/checkout.service.d/"} {
		if !strings.Contains(p.Systemd, want) {
			t.Errorf("no %q in\n%s", want, p.Systemd)
		}
	}
	var r resources
	if err := yaml.Unmarshal([]byte(p.Deployment), &r); err != nil {
		t.Fatal(err)
	}
	c := r.Spec.Template.Spec.Containers[0]
	if c.Name != "shop" || c.Resources.Limits["cpu"] != "1235m" || c.Resources.Requests["memory"] != "536870912" || len(c.Resources.Limits) != 2 {
		t.Errorf("%+v", c)
	}
	if len(p.Left) != 1 || p.Left["workers"] == "" {
		t.Errorf("%v", p.Left)
	}
}

// A name of a group that ends in .service says nothing of systemd, and a drop-in for the
// slice around a group would bound its neighbours.
func TestThePatchIsForTheUnitThatTheHostSaysTheGroupIs(t *testing.T) {
	for unit, want := range map[string]string{"": "UNIT.service", "docker-1.scope": "UNIT.service", "checkout.service": "checkout.service", "shop.slice": "shop.slice"} {
		p, _, _ := advised("shop", unit, map[string]trimtab.Amount{"cpu": trimtab.Units(1)}).Patch("shop")
		if !strings.Contains(p.Systemd, "/etc/systemd/system/"+want+".d/") {
			t.Errorf("unit %q, want %s:\n%s", unit, want, p.Systemd)
		}
	}
}

func TestAPatchWithoutAnythingToSaySaysWhy(t *testing.T) {
	p, _, _ := advised("shop", "", map[string]trimtab.Amount{"workers": trimtab.Units(4)}).Patch("shop")
	if p.Systemd != "" || p.Deployment != "" || p.Left["workers"] == "" || p.Unit != "" {
		t.Errorf("%+v", p)
	}
	p, _, _ = advised("shop", "shop.slice", map[string]trimtab.Amount{"cpu": trimtab.Unlimited()}).Patch("shop")
	if !strings.Contains(p.Systemd, "[Slice]\nCPUQuota=\n") || p.Deployment != "" || p.Left["cpu"] == "" {
		t.Errorf("%+v", p)
	}
}

// TestNoNameOfAWorkloadAddsALineToAPatch, nor changes another value in it.
func TestNoNameOfAWorkloadAddsALineToAPatch(t *testing.T) {
	plain, _, _ := advised("shop", "shop.service", map[string]trimtab.Amount{"cpu": trimtab.Units(1.5)}).Patch("shop")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\n\r"'\\#:%{}\[\]&*!|>-]{1,20}`), rapid.Just("x\nExecStart=/bin/evil"), rapid.Just("a\\"), rapid.Just("\u2028\u0085a: b")).Draw(t, "name")
		p, _, _ := advised(name, name+".service", map[string]trimtab.Amount{"cpu": trimtab.Units(1.5)}).Patch(name)
		if got, want := settings(p.Systemd), settings(plain.Systemd); got != want || strings.ContainsAny(p.Systemd, "\r\x00\u0085\u2028") {
			t.Fatalf("%q became\n%s", name, p.Systemd)
		}
		var r resources
		if err := yaml.Unmarshal([]byte(p.Deployment), &r); err != nil {
			t.Fatalf("%q: %v\n%s", name, err, p.Deployment)
		}
		c := r.Spec.Template.Spec.Containers
		if len(c) != 1 || c[0].Name != strings.ToValidUTF8(name, "\ufffd") || c[0].Resources.Limits["cpu"] != "1500m" {
			t.Fatalf("%q became %+v", name, c)
		}
	})
}

// settings are the lines of a unit's file that are no comments.
func settings(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestSystemdAcceptsTheDropIn(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	p, _, _ := advised("shop\nx", "shop.service", map[string]trimtab.Amount{"cpu": trimtab.Units(1.234), "memory": trimtab.Units(1 << 30)}).Patch("shop\nx")
	verify := func(dropIn string) string {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "shop.service.d"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"shop.service": "[Service]\nExecStart=/bin/sh\n", "shop.service.d/50-trimtab.conf": dropIn} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", filepath.Join(dir, "shop.service")).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := verify(p.Systemd); out != "" {
		t.Errorf("%s\n%s", out, p.Systemd)
	}
	// And it would have found a mistake.
	if out := verify(strings.Replace(p.Systemd, "CPUQuota=124%", "CPUQuota=124 cores", 1)); !strings.Contains(out, "Invalid CPU quota") {
		t.Errorf("a wrong value passes: %q", out)
	}
}
