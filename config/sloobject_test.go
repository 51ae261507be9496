package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// fileOf is a configuration whose one workload has that SLO.
func fileOf(t *testing.T, slo string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	text := "prometheus: {url: http://127.0.0.1:9090}\npool: {cpu: 4}\nkubernetes: {context: east}\nworkloads:\n  - name: cart\n    slo: " + slo + "\n    match: {kubernetes: {namespace: shop, deployment: cart}}\n    knob: {cpu: {min: 0.1, max: 2}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const latencyObject = `{"apiVersion": "sloth.slok.dev/v1", "kind": "PrometheusServiceLevel", "metadata": {"name": "cart", "namespace": "shop"},
 "spec": {"service": "cart", "slos": [{"name": "requests", "objective": %s, "sli": {"events": {"errorQuery": "sum(rate(errors[{{.window}}]))", "totalQuery": "sum(rate(requests[{{.window}}]))"}}}]}}`

func TestAnObjectOfTheClusterSaysTheSLO(t *testing.T) {
	asked := ""
	c, err := config.LoadWith(fileOf(t, "{object: PrometheusServiceLevel shop/cart}"), func(of config.Kubernetes, object string) ([]byte, error) {
		asked = of.Context + " " + object
		return fmt.Appendf(nil, latencyObject, "99.5"), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workloads[0]
	if w.SLO.Target() != 0.995 || !strings.Contains(w.Performance, "errors[1m]") || !strings.Contains(w.Load, "requests[1m]") || w.SLO.Object != "PrometheusServiceLevel shop/cart" {
		t.Errorf("%+v", w)
	}
	if asked != "east PrometheusServiceLevel shop/cart" {
		t.Errorf("it asked for %q", asked)
	}
}

func TestWhereObjectsAreNotReadTheFileIsGoodAllTheSameAndSaysSo(t *testing.T) {
	for name, load := range map[string]func(string) (*config.Config, error){"load": config.Load, "check": config.Check} {
		c, err := load(fileOf(t, "{object: SLO shop/cart}"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Error(), "SLO shop/cart was not looked up") || c.Workloads[0].SLO.Target() != 0 {
			t.Errorf("%s: warnings %v, target %v", name, c.Warnings, c.Workloads[0].SLO.Target())
		}
	}
}

func TestAnObjectThatIsWrongIsOneMistakeWithItsPlaceAndAHint(t *testing.T) {
	good := fmt.Sprintf(latencyObject, "99.5")
	for slo, test := range map[string]struct{ text, want string }{
		"{object: shop/cart}":                                       {good, `6:19: object is "shop/cart", want KIND NAMESPACE/NAME`},
		"{object: PrometheusServiceLevl shop/cart}":                 {good, "6:19: kind PrometheusServiceLevl says no objective"},
		"{object: PrometheusServiceLevel shop/gone}":                {"", "6:19: PrometheusServiceLevel shop/gone cannot be read"},
		"{object: PrometheusServiceLevel shop/cart, latency: 1s}":   {good, "6:62: slo has both an object and a latency"},
		"{object: PrometheusServiceLevel shop/cart, file: a.yaml}":  {good, "6:59: slo has both an object and a file"},
		"{object: PrometheusServiceLevel shop/cart, name: request}": {good, `6:59: the object has no objective "request"`},
		"{object: PrometheusServiceLevel shop/cart }":               {fmt.Sprintf(latencyObject, "100"), "6:19: the object has mistakes: "},
	} {
		_, err := config.LoadWith(fileOf(t, slo), func(_ config.Kubernetes, object string) ([]byte, error) {
			if test.text == "" {
				return nil, fmt.Errorf("find %s: %w", object, os.ErrNotExist)
			}
			return []byte(test.text), nil
		}, nil)
		var list config.Errors
		if !errors.As(err, &list) || len(list) != 1 || !strings.Contains(err.Error(), test.want) || list[0].Hint == "" {
			t.Errorf("%s: want %q, got %v", slo, test.want, err)
		}
	}
}
