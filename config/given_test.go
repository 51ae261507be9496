package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// again is a file of what a configuration gives, and its configuration.
func again(t *testing.T, c *config.Config) (string, *config.Config, *config.Given) {
	t.Helper()
	g, err := config.GivenBy(c.Redacted())
	if err != nil {
		t.Fatal(err)
	}
	_, lines := g.Sections()
	word := "workloads:"
	if len(g.Workloads) == 0 {
		word = "workloads: []"
	}
	lines = append(lines, word)
	for _, w := range g.Workloads {
		lines = append(lines, "  - "+w)
	}
	text := strings.Join(lines, "\n") + "\n"
	out, err := config.Parse("again", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return text, out, g
}

func TestWhatAConfigurationGivesIsTheSameConfigurationInFewerWords(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		c := load(t, filepath.Base(file))
		text, same, _ := again(t, c)
		if changes := config.Changed(c, same); len(changes) > 0 {
			t.Errorf("%s: %v\n%s", file, changes, text)
		}
		if 3*len(text) > 2*len(c.Redacted()) {
			t.Errorf("%s: %d bytes of %d:\n%s", file, len(text), len(c.Redacted()), text)
		}
	}
	if text, _, _ := again(t, config.Default()); text != "workloads: []\n" {
		t.Errorf("the defaults need a file:\n%s", text)
	}
}

func TestWhatAConfigurationGivesNamesItsSecretsAndHasNone(t *testing.T) {
	c := parse(t, `
prometheus: {url: "http://p:9090", basic_auth: {username: me, password: hunter2}, http_headers: {X-Scope: {values: [hunter2]}}, proxy_url: "http://me:hunter2@proxy"}
nats: {url: "nats://n:4222", token: hunter2}
workloads: [{name: a, mode: off, load: 'sum(rate(a{b="c''d"}[1m]))'}]
`)
	text, same, g := again(t, c)
	if strings.Contains(text, "hunter2") || strings.Contains(text, "<secret>") {
		t.Error(text)
	}
	if want := []string{"nats.token", "prometheus.basic_auth.password", "prometheus.http_headers", "prometheus.proxy_url"}; !slices.Equal(slices.Sorted(slices.Values(g.Secrets)), want) {
		t.Errorf("secrets %q, want %q", g.Secrets, want)
	}
	if same.Workloads[0].Load != c.Workloads[0].Load || same.Prometheus.HTTP.BasicAuth.Username != "me" {
		t.Errorf("came back as\n%s", text)
	}
}

func TestAZeroThatWasAskedForIsShownWhereItIsNotTheDefault(t *testing.T) {
	c := parse(t, "actuator: {apply: false}\nguard: {dead_band: 0, reversal_window: 0s}\nplanning: {move_cost: 0}\nspeculate: {user: batch, programs: [/bin/true], slack: 0}\n")
	for _, want := range []string{"apply: false", "dead_band: 0", "reversal_window: 0s", "move_cost: 0", "slack: 0"} {
		if !strings.Contains(string(c.Redacted()), want+"\n") {
			t.Errorf("no %q in\n%s", want, c.Redacted())
		}
	}
	text, same, _ := again(t, c)
	if changes := config.Changed(c, same); len(changes) > 0 {
		t.Errorf("%v\n%s", changes, text)
	}
}
